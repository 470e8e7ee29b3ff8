//! What the functions of the table do, and what is recorded of their calls.

macro_rules! effects {
    ($($(#[$doc:meta])* $name:ident $text:literal),* $(,)?) => {
        /// What a function does: which arguments it has, what is recorded of it before (E) and after the call (L).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Effect { $($(#[$doc])* $name),* }

        impl Effect {
            /// All with their names in the table.
            pub(crate) const ALL: &'static [(Effect, &'static str)] = &[$((Effect::$name, $text)),*];
        }
    };
}

effects! {
    /// Only that it was called.
    Region "region",
    /// (buffer count type peer tag comm) E: z peer, z tag, h comm, u bytes
    Send "send",
    /// (buffer count type peer tag comm request) E as send; L: h request
    Isend "isend",
    /// as isend, persistent
    SendInit "send_init",
    /// (buffer count type peer tag comm status) E: h comm; L: status = z source, z tag, u bytes * 2 + cancelled
    Recv "recv",
    /// (buffer count type peer tag comm request) E: h comm, u 1 if from nobody (`MPI_PROC_NULL`); L: h request
    Irecv "irecv",
    /// as irecv, persistent
    RecvInit "recv_init",
    /// (sendbuf count type peer tag recvbuf count type peer tag comm status) E as send; L: status
    Sendrecv "sendrecv",
    /// (buffer count type dest sendtag source recvtag comm status) likewise
    SendrecvReplace "sendrecv_replace",
    /// sendrecv with a request in place of the status: E as send, then what is to be received: z source (negative: [`NOBODY`](super::NOBODY) or
    /// [`ANYBODY`](super::ANYBODY)), z tag (negative: any), u bytes; L: h request
    Isendrecv "isendrecv",
    /// sendrecv_replace likewise
    IsendrecvReplace "isendrecv_replace",
    /// (request status) E: h request; L: status
    Wait "wait",
    /// (n requests statuses) E: u n, n h; L: n statuses
    Waitall "waitall",
    /// (n requests index status) E: u n, n h; L: u index + 1 or 0, status
    Waitany "waitany",
    /// (n requests outcount indices statuses) E: u n, n h; L: u outcount, as many times u index, status
    Waitsome "waitsome",
    /// (request flag status) E: h; L: u flag, if set the status
    Test "test",
    /// (request, not its address, flag status) likewise: the request stays
    GetStatus "get_status",
    /// (n requests flag statuses) E: u n, n h; L: u flag, if set n statuses
    Testall "testall",
    /// (n requests index flag status) E: u n, n h; L: u flag, if set u index + 1 or 0 and the status
    Testany "testany",
    /// (n requests outcount indices statuses) as waitsome
    Testsome "testsome",
    /// (request) E: h
    Start "start",
    /// (n requests) E: u n, n h
    Startall "startall",
    /// (request) E: h
    RequestFree "request_free",
    /// (peer tag comm message status) E: h comm, u 1 for nobody; L: u message
    Mprobe "mprobe",
    /// (peer tag comm flag message status) E: h comm, u 1 for nobody; L: u flag, if set u message
    Improbe "improbe",
    /// (buffer count type message status) E: u message; L: status
    Mrecv "mrecv",
    /// (buffer count type message request) E: u message; L: h request
    Imrecv "imrecv",
    /// (comm) E of all collective operations: h comm, z root, u bytes of the send arguments, u of the receive arguments (block sizes where all are
    /// alike, else sums; 0 where the process has none), u 1 if in place
    Barrier "barrier",
    /// (buffer count type root comm)
    Bcast "bcast",
    /// (sendbuf count type recvbuf count type root comm)
    Gather "gather",
    /// (sendbuf count type recvbuf counts displacements type root comm)
    Gatherv "gatherv",
    /// as gather
    Scatter "scatter",
    /// (sendbuf counts displacements type recvbuf count type root comm)
    Scatterv "scatterv",
    /// (sendbuf count type recvbuf count type comm)
    Allgather "allgather",
    /// (sendbuf count type recvbuf counts displacements type comm)
    Allgatherv "allgatherv",
    /// as allgather
    Alltoall "alltoall",
    /// (sendbuf counts displacements type recvbuf counts displacements type comm)
    Alltoallv "alltoallv",
    /// as alltoallv, with types
    Alltoallw "alltoallw",
    /// (sendbuf recvbuf count type op comm)
    Allreduce "allreduce",
    /// (sendbuf recvbuf count type op root comm)
    Reduce "reduce",
    /// (sendbuf recvbuf counts type op comm)
    ReduceScatter "reduce_scatter",
    /// as allreduce
    ReduceScatterBlock "reduce_scatter_block",
    /// as allreduce
    Scan "scan",
    /// as allreduce
    Exscan "exscan",
    /// Initialises MPI.
    Init "init",
    /// Likewise.
    InitThread "init_thread",
    /// Ends MPI, and the recording.
    Finalize "finalize",
    /// (comm ... newcomm) E: h comm; a COMMUNICATOR before L
    CommCreate "comm_create",
    /// (comm newcomm request) likewise; L: h request
    CommIdup "comm_idup",
    /// (comm group tag newcomm) as comm_create, with z tag (0 if it is a text), but only the members of the new one call it
    CommCreateGroup "comm_create_group",
    /// (comm leader peercomm leader tag newcomm) likewise
    IntercommCreate "intercomm_create",
    /// (intercomm high newcomm) likewise
    IntercommMerge "intercomm_merge",
    /// (comm) E: h comm
    CommFree "comm_free",
    /// (comm name) L: nothing; a NAME before L
    CommName "comm_name",
    /// (... comm win) E: h comm; a WINDOW before L
    WinCreate "win_create",
    /// (... comm pointer win) likewise; the window has memory of its own
    WinAllocate "win_allocate",
    /// (win) E: h window
    WinFree "win_free",
    /// (win name) L: nothing; a NAME before L
    WinName "win_name",
    /// (assertion win) E: h window
    WinFence "win_fence",
    /// (group assertion win) E: h window, u n, n u global ranks
    WinStart "win_start",
    /// likewise
    WinPost "win_post",
    /// (win) E: h window
    WinComplete "win_complete",
    /// (win) E: h window
    WinWait "win_wait",
    /// (win flag) E: h window; L: u flag
    WinTest "win_test",
    /// (type rank assertion win) E: h window, z rank, u 1 if exclusive
    WinLock "win_lock",
    /// (rank win) E: h window, z rank
    WinUnlock "win_unlock",
    /// (assertion win) E: h window
    WinLockAll "win_lock_all",
    /// (win) E: h window
    WinUnlockAll "win_unlock_all",
    /// (rank win) E: h window, z rank
    WinFlush "win_flush",
    /// (win) E: h window
    WinFlushAll "win_flush_all",
    /// (rank win) E: h window, z rank
    WinFlushLocal "win_flush_local",
    /// (win) E: h window
    WinFlushLocalAll "win_flush_local_all",
    /// (buffer count type target displacement count type win) E of all one-sided operations: h window, z target, u bytes sent, u bytes received
    Put "put",
    /// as put
    Get "get",
    /// (buffer count type target displacement count type op win)
    Accumulate "accumulate",
    /// (buffer count type result count type target displacement count type op win)
    GetAccumulate "get_accumulate",
    /// (buffer result type target displacement op win)
    FetchAndOp "fetch_and_op",
    /// (buffer compare result type target displacement win)
    CompareAndSwap "compare_and_swap",
}

/// What is recorded of a call when it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gives {
    /// Nothing.
    Nothing,
    /// h request
    Request,
    /// status
    Status,
    /// n statuses
    Statuses,
    /// u index + 1 or 0, status
    Indexed,
    /// u count, as many times u index, status
    Some,
    /// u flag
    Flag,
    /// u flag, if set the status
    FlagStatus,
    /// u flag, if set n statuses
    FlagStatuses,
    /// u flag, if set u index + 1 or 0 and the status
    FlagIndexed,
    /// u message
    Message,
    /// u flag, if set u message
    FlagMessage,
}

impl Effect {
    /// Whether later records cannot be read without those of a call with this effect: it makes, frees or names communicators, windows or persistent requests.
    pub(crate) fn is_kept(self, form: Form) -> bool {
        form == Form::Persistent
            || matches!(
                self,
                Effect::Init
                    | Effect::InitThread
                    | Effect::Finalize
                    | Effect::SendInit
                    | Effect::RecvInit
                    | Effect::RequestFree
                    | Effect::CommCreate
                    | Effect::CommIdup
                    | Effect::CommCreateGroup
                    | Effect::IntercommCreate
                    | Effect::IntercommMerge
                    | Effect::CommFree
                    | Effect::CommName
                    | Effect::WinCreate
                    | Effect::WinAllocate
                    | Effect::WinFree
                    | Effect::WinName
            )
    }

    /// What is recorded when a call with this effect is over.
    pub(crate) fn gives(self, form: Form) -> Gives {
        match self {
            Effect::Isend
            | Effect::SendInit
            | Effect::Irecv
            | Effect::RecvInit
            | Effect::Isendrecv
            | Effect::IsendrecvReplace
            | Effect::Imrecv
            | Effect::CommIdup => Gives::Request,
            Effect::Recv | Effect::Sendrecv | Effect::SendrecvReplace | Effect::Wait | Effect::Mrecv => Gives::Status,
            Effect::Waitall => Gives::Statuses,
            Effect::Waitany => Gives::Indexed,
            Effect::Waitsome | Effect::Testsome => Gives::Some,
            Effect::Test | Effect::GetStatus => Gives::FlagStatus,
            Effect::Testall => Gives::FlagStatuses,
            Effect::Testany => Gives::FlagIndexed,
            Effect::Mprobe => Gives::Message,
            Effect::Improbe => Gives::FlagMessage,
            Effect::WinTest => Gives::Flag,
            _ if form != Form::Blocking => Gives::Request,
            _ => Gives::Nothing,
        }
    }
}

/// In which way a collective operation is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// It returns when it is complete.
    Blocking,
    /// With a request: L has h request.
    Immediate,
    /// With a request that is started later: likewise.
    Persistent,
}

/// One function of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Function<'a> {
    /// Its name without `MPI_`.
    pub name: &'a str,
    /// Number of arguments in C.
    pub arguments: usize,
    /// What it does.
    pub effect: Effect,
    /// Of a collective operation.
    pub form: Form,
    /// Whether there is a form for large counts.
    pub large: bool,
    /// Number of arguments of characters, whose lengths follow the arguments in Fortran.
    pub texts: usize,
    /// Number of arguments in Fortran, besides the error code; none if that form is not intercepted.
    pub fortran: Option<usize>,
}

/// The functions of the table, in order.
pub(crate) fn functions(table: &str) -> impl Iterator<Item = Option<Function<'_>>> {
    table.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(|line| {
        let mut words = line.split(' ');
        let (name, arguments, effect) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
        let known = |text: &str| Effect::ALL.iter().find(|(_, name)| *name == text).map(|&(effect, _)| effect);
        let (mut large, mut texts, mut fortran) = (false, 0, Some(arguments));
        for word in words {
            match word {
                "c" => large = true,
                "-f" => fortran = None,
                _ if word.starts_with("s=") => texts = word.strip_prefix("s=")?.parse().ok()?,
                _ => fortran = Some(word.strip_prefix("f=")?.parse().ok()?),
            }
        }
        // Immediate forms (with i, or r of one-sided operations) and persistent ones have names made from that of the operation.
        let forms = [
            (Some(effect), Form::Blocking),
            (effect.strip_prefix('i'), Form::Immediate),
            (effect.strip_prefix('r'), Form::Immediate),
            (effect.strip_suffix("_init"), Form::Persistent),
        ];
        let (effect, form) = forms.into_iter().find_map(|(text, form)| Some((text.and_then(known)?, form)))?;
        Some(Function { name, arguments, effect, form, large, texts, fortran })
    })
}
