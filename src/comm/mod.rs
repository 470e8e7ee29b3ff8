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
