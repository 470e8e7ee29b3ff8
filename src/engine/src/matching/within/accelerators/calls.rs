//! The interfaces of accelerators: which of their calls do what.

use clc_trace::{AcceleratorAttributes, Definitions, ParameterId, RegionId};
use std::collections::HashMap;

/// What a region of an accelerator's interface does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AcceleratorCall {
    /// Launches a kernel.
    Launch,
    /// Copies between host and device; whether it returns only when the copy is complete (towards the host).
    Copy { blocks: bool },
    /// Waits for a stream; which one, only an attribute can tell.
    WaitForStream,
    /// Puts an event into a stream, behind the work that was issued to it; both are told by attributes only.
    PlaceEvent,
    /// Waits for such an event, and so for that work.
    WaitForEvent,
    /// Waits for all streams of a device.
    WaitForDevice,
    /// On a stream: it does nothing.
    Idle,
}

/// The regions of accelerators' interfaces among those of a trace, and how calls name streams, events and call sites.
#[derive(Debug, Default)]
pub struct AcceleratorCalls {
    pub(super) regions: HashMap<RegionId, AcceleratorCall>,
    pub(super) callsites: Vec<ParameterId>,
    attributes: AcceleratorAttributes,
}

impl AcceleratorCalls {
    /// Those of a trace, by the names of CUDA's driver and runtime, of HIP, and of OpenCL.
    pub fn of(definitions: &Definitions) -> AcceleratorCalls {
        let call = |name: &str| {
            use AcceleratorCall as C;
            // The driver of CUDA numbers versions of its functions.
            let name = ["_v2", "_v3"].iter().find_map(|version| name.strip_suffix(version)).unwrap_or(name);
            Some(match name {
                "cuLaunchKernel" | "cuLaunchGrid" | "cuLaunchGridAsync" | "cuLaunch" => C::Launch,
                "hipLaunchKernel"
                | "hipModuleLaunchKernel"
                | "hipExtModuleLaunchKernel"
                | "hipHccModuleLaunchKernel" => C::Launch,
                "clEnqueueNDRangeKernel" | "clEnqueueTask" => C::Launch,
                "hipMemcpy" | "hipMemcpyWithStream" | "hipMemcpyDtoH" | "hipMemcpyHtoD" | "hipMemcpyFromSymbol" => {
                    C::Copy { blocks: true }
                }
                "cuMemcpyDtoH" | "cuMemcpyHtoD" => C::Copy { blocks: true },
                "hipMemcpyAsync" | "hipMemcpyHtoDAsync" | "hipMemcpyDtoHAsync" | "hipMemcpyFromSymbolAsync" => {
                    C::Copy { blocks: false }
                }
                "cuMemcpyAsync" | "cuMemcpyHtoDAsync" | "cuMemcpyDtoHAsync" => C::Copy { blocks: false },
                "cuStreamSynchronize" | "cudaStreamSynchronize" | "hipStreamSynchronize" | "clFinish" => {
                    C::WaitForStream
                }
                "cuEventRecord" | "cuEventRecordWithFlags" => C::PlaceEvent,
                "cuEventSynchronize" | "cudaEventSynchronize" | "hipEventSynchronize" | "clWaitForEvents" => {
                    C::WaitForEvent
                }
                "cuCtxSynchronize"
                | "cudaDeviceSynchronize"
                | "cudaThreadSynchronize"
                | "hipDeviceSynchronize"
                | "DEVICE SYNCHRONIZE" => C::WaitForDevice,
                "COMPUTE IDLE" | "GPU IDLE" => C::Idle,
                _ => return None,
            })
        };
        AcceleratorCalls {
            regions: definitions.regions.iter().filter_map(|r| Some((r.id, call(&r.name)?))).collect(),
            callsites: definitions.callsites.clone(),
            attributes: definitions.accelerator_attributes.clone(),
        }
    }

    /// The attributes by which calls name what they refer to.
    pub(crate) fn attributes(&self) -> &AcceleratorAttributes {
        &self.attributes
    }
}
