//! stub
#![allow(missing_docs)]
use crate::trace::Result;
use serde::{Serialize, de::DeserializeOwned};
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    Replay,
    Exchange,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReduceOp {
    Min,
    Max,
    Sum,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Top2 {
    pub max: i64,
    pub holder: i64,
    pub second: i64,
}
impl Top2 {
    pub const NONE: Top2 = Top2 { max: i64::MIN, holder: i64::MAX, second: i64::MIN };
    pub fn one(max: i64, holder: i64) -> Top2 {
        Top2 { max, holder, second: i64::MIN }
    }
    pub fn merge(self, o: Top2) -> Top2 {
        if self.max > o.max || (self.max == o.max && self.holder <= o.holder) {
            Top2 { max: self.max, holder: self.holder, second: self.second.max(o.max) }
        } else {
            o.merge(self)
        }
    }
    pub fn excluding(&self, holder: i64) -> i64 {
        if self.holder == holder { self.second } else { self.max }
    }
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupId(pub usize);
pub trait Transport {
    fn rank(&self) -> usize;
    fn size(&self) -> usize;
    fn post(&mut self, destination: usize, channel: Channel, words: Vec<u64>) -> Result<()>;
    fn poll(&mut self, channel: Channel) -> Result<Option<(usize, Vec<u64>)>>;
    fn start_vote(&mut self, values: &[i64]) -> Result<()>;
    fn poll_vote(&mut self) -> Result<Option<Vec<i64>>>;
    fn barrier(&mut self) -> Result<()>;
    fn all_reduce(&mut self, op: ReduceOp, values: &mut [i64]) -> Result<()>;
    fn broadcast(&mut self, root: usize, bytes: &mut Vec<u8>) -> Result<()>;
    fn gather(&mut self, root: usize, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>>;
    fn all_gather(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>>;
    fn idle(&mut self);
    fn library(&self) -> String;
    fn create_group(&mut self, members: &[usize], tag: u32) -> Result<GroupId>;
    fn send_time(&mut self, destination: usize, words: [i64; 2]) -> Result<()>;
    fn receive_time(&mut self, source: usize) -> Result<[i64; 2]>;
    fn group_bcast(&mut self, g: GroupId, root: usize, value: i64) -> Result<i64>;
    fn group_reduce_top2(&mut self, g: GroupId, root: usize, v: Top2) -> Result<Option<Top2>>;
    fn group_all_reduce_top2(&mut self, g: GroupId, v: Top2) -> Result<Top2>;
    fn group_exscan_max(&mut self, g: GroupId, value: i64) -> Result<Option<i64>>;
}
pub fn sparse_exchange(_t: &mut dyn Transport, outgoing: Vec<(usize, Vec<u64>)>) -> Result<Vec<(usize, Vec<u64>)>> {
    Ok(outgoing)
}
pub fn broadcast_value<T: Serialize + DeserializeOwned>(_t: &mut dyn Transport, _root: usize, v: T) -> Result<T> {
    Ok(v)
}
pub fn all_gather_values<T: Serialize + DeserializeOwned + Clone>(_t: &mut dyn Transport, v: &T) -> Result<Vec<T>> {
    Ok(vec![v.clone()])
}

pub fn gather_values<T: Serialize + DeserializeOwned + Clone>(
    _t: &mut dyn Transport,
    _root: usize,
    v: &T,
) -> Result<Option<Vec<T>>>
where
    T: Serialize,
{
    Ok(Some(vec![v.clone()]))
}
pub fn agree<T>(_t: &mut dyn Transport, v: Result<T>) -> Result<T> {
    v
}
pub fn start() -> Result<Box<dyn Transport>> {
    Ok(Box::new(Alone))
}
struct Alone;
impl Transport for Alone {
    fn rank(&self) -> usize {
        0
    }
    fn size(&self) -> usize {
        1
    }
    fn post(&mut self, _d: usize, _c: Channel, _w: Vec<u64>) -> Result<()> {
        Ok(())
    }
    fn poll(&mut self, _c: Channel) -> Result<Option<(usize, Vec<u64>)>> {
        Ok(None)
    }
    fn start_vote(&mut self, _v: &[i64]) -> Result<()> {
        Ok(())
    }
    fn poll_vote(&mut self) -> Result<Option<Vec<i64>>> {
        Ok(None)
    }
    fn barrier(&mut self) -> Result<()> {
        Ok(())
    }
    fn all_reduce(&mut self, _op: ReduceOp, _v: &mut [i64]) -> Result<()> {
        Ok(())
    }
    fn broadcast(&mut self, _r: usize, _b: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }
    fn gather(&mut self, _r: usize, b: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        Ok(Some(vec![b.to_vec()]))
    }
    fn all_gather(&mut self, b: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(vec![b.to_vec()])
    }
    fn idle(&mut self) {}
    fn library(&self) -> String {
        String::new()
    }
    fn create_group(&mut self, _m: &[usize], _t: u32) -> Result<GroupId> {
        Ok(GroupId(0))
    }
    fn send_time(&mut self, _d: usize, _w: [i64; 2]) -> Result<()> {
        Ok(())
    }
    fn receive_time(&mut self, _s: usize) -> Result<[i64; 2]> {
        Ok([0, 0])
    }
    fn group_bcast(&mut self, _g: GroupId, _r: usize, v: i64) -> Result<i64> {
        Ok(v)
    }
    fn group_reduce_top2(&mut self, _g: GroupId, _r: usize, v: Top2) -> Result<Option<Top2>> {
        Ok(Some(v))
    }
    fn group_all_reduce_top2(&mut self, _g: GroupId, v: Top2) -> Result<Top2> {
        Ok(v)
    }
    fn group_exscan_max(&mut self, _g: GroupId, _v: i64) -> Result<Option<i64>> {
        Ok(None)
    }
}
