// One session of a server, with the verbs of a session of the library. Each verb is one request, or a few reads.
import { type BlobRef, Fault, type Message } from '../kernel/index.ts'
import type {
  Answer,
  ApprovalDecision,
  Command,
  CommandOptions,
  EventPage,
  EventsFilter,
  FoldedState,
  FollowOptions,
  Followed,
  ForkOptions,
  Input,
  InterruptOptions,
  LaterOptions,
  PendingCall,
  PinOptions,
  PinReceipt,
  PursueOptions,
  PursuitReceipt,
  RenamedSession,
  RenameOptions,
  Result,
  ResultOptions,
  RunOptions,
  RunStream,
  ScheduledWake,
  ScheduleOptions,
  SendOptions,
  SentReceipt,
  Session,
  SessionState,
  SessionStatus,
  StatusOptions,
  StatusParts,
  StreamOptions,
  UndoneCall,
} from '../index.ts'
import type { Blob } from '../ports/store.ts'
import { readEventPage } from '../sessions/event-page.ts'
import { laterWithSignal, readMoment } from '../sessions/moment.ts'
import { isCommands } from '../sessions/is-commands.ts'
import { requireComplete } from '../sessions/run-failed.ts'
import type { MessagesAnswer, OpenedAnswer, UndoneAnswer, UnscheduledAnswer, WireReceipt } from '../server/wire.ts'
import { followRemote } from './follow-session.ts'
import { awaitRemoteRun, openRemoteStream, readRemoteResult, type RemoteSession, stopOnAbort } from './remote-run.ts'
import { readRemoteStatus } from './remote-status.ts'
import type { RouteRequest } from './server-connection.ts'
import { refuseOptions, unsupportedFault } from './unsupported.ts'
import { wireInput } from './wire-input.ts'

/** The server's longest wait for a result. */
const WAIT_S_MAX = 30

/** One session of a server, with the verbs of a session of a harness. */
export class ClientSession implements Session {
  /** The id of the session. */
  readonly id: string
  readonly #remote: RemoteSession

  constructor(remote: RemoteSession) {
    this.id = remote.id
    this.#remote = remote
  }

  #json<T>(...[name, request = {}]: Parameters<RemoteSession['wires']['json']>): Promise<T> {
    return this.#remote.wires.json<T>(name, { ...request, params: { id: this.id, ...request.params } })
  }

  async send(given: Input | readonly Command[], options: SendOptions & LaterOptions = {}): Promise<SentReceipt> {
    return isCommands(given) ? this.#sendCommands(given, options) : this.#sendInput(given, options)
  }

  async #sendInput(input: Input, options: SendOptions & LaterOptions): Promise<SentReceipt> {
    const { signal } = options
    if (signal && options.at !== undefined) throw laterWithSignal()
    const receipt = await this.#send(input, options)
    if (signal)
      void stopOnAbort(
        signal,
        () => this.interrupt(),
        () => this.#settled(receipt.seq),
      ).catch(() => {})
    return receipt
  }

  /** The server takes the name of the sender from the token. */
  async #send(input: Input, options: SendOptions & LaterOptions): Promise<WireReceipt> {
    refuseOptions('send', options, ['output', 'traceparent'])
    const { id, by: _by, signal: _signal, output: _output, traceparent: _trace, at, ...body } = options
    const later = at === undefined ? {} : { at: readMoment(at, 'at') }
    return this.#json('send', { body: { ...body, ...later, input: wireInput(input) }, ...keyOf(id) })
  }

  #settled(input: number | null, { patienceMs, limits }: SendOptions = {}): Promise<Result> {
    return awaitRemoteRun(this.#remote, { input, patienceMs: patienceMs ?? limits?.patienceMs ?? undefined })
  }

  #sendCommands(commands: readonly Command[], { id }: CommandOptions): Promise<SentReceipt> {
    const said = commands.map((each) => (each.type === 'message' ? { ...each, input: wireInput(each.input) } : each))
    return this.#json('commands', { body: { commands: said }, ...keyOf(id) })
  }

  async run(input?: Input, options: SendOptions & RunOptions = {}): Promise<Result> {
    refuseOptions('run', options, ['raw'])
    const { require: needed, raw: _raw, signal, ...said } = options
    const seq = input === undefined ? null : (await this.#send(input, said)).seq
    const wait = (): Promise<Result> => this.#settled(seq, said)
    return requireComplete(
      seq === null ? await wait() : await stopOnAbort(signal, () => this.interrupt(), wait),
      needed,
    )
  }

  stream(input?: Input, options: StreamOptions & SendOptions = {}): RunStream {
    refuseOptions('stream', options, ['raw'])
    const { after: _after, deltas: _deltas, subagents: _below, detach: _detach, raw: _raw, ...said } = options
    const begin = async () => ({ id: this.id, input: input === undefined ? null : (await this.#send(input, said)).seq })
    return openRemoteStream(this.#remote, { ...options, begin, stop: () => this.interrupt() })
  }

  follow(options: FollowOptions = {}): AsyncIterableIterator<Followed> {
    return followRemote(this.#remote.wires, this.id, options)
  }

  async messages(): Promise<readonly Message[]> {
    return (await this.#json<MessagesAnswer>('messages')).messages
  }

  status(options: { readonly at: number }): Promise<FoldedState>
  status<Part extends keyof StatusParts = never>(options?: StatusOptions<Part>): Promise<SessionStatus<Part>>
  async status({
    at,
    include = [],
  }: StatusOptions & { readonly at?: number } = {}): Promise<SessionState | FoldedState> {
    if (at !== undefined) return this.#remote.logs.stateAt(this.id, at)
    return readRemoteStatus(this.#remote, include)
  }

  async result({ waitMs = 0 }: ResultOptions = {}): Promise<Result | null> {
    for (let left = Math.ceil(waitMs / 1_000); ; left -= WAIT_S_MAX) {
      const result = await readRemoteResult(this.#remote, Math.min(WAIT_S_MAX, Math.max(0, left)))
      if (result !== null || left <= WAIT_S_MAX) return result
    }
  }

  /** Sends the call as it was shown: its digest is sent along. The name and the role come from the token. */
  async decide(
    decision: Omit<ApprovalDecision, 'by'> & Partial<Pick<ApprovalDecision, 'by'> & ShownFields>,
  ): Promise<SentReceipt> {
    refuseOptions('decide', decision, ['remember', 'scope', 'under'])
    const { callId, allow, digest, args, sessionId, why, role, usd, tool, class: kind, n, roles } = decision
    const shown = callId === 'budget' ? {} : { args, tool, class: kind, n, roles }
    return this.#json('decide', { body: { callId, allow, digest, sessionId, why, role, usd, ...shown } })
  }

  answer({ callId, content, ok, sessionId }: Answer): Promise<SentReceipt> {
    return this.#json('answer', { body: { callId, content, ok, sessionId } })
  }

  interrupt(mode: 'stop' | 'pause' = 'stop', { id }: InterruptOptions = {}): Promise<SentReceipt> {
    return this.#json('interrupt', { body: { mode }, ...keyOf(id) })
  }

  /** The server takes the name of the sender from the token. */
  async schedule({ id, by: _by, at, ...options }: ScheduleOptions): Promise<ScheduledWake> {
    const body = at === undefined ? options : { ...options, at: readMoment(at, 'at') }
    return this.#json('schedule', { body, ...keyOf(id) })
  }

  async unschedule(key: string): Promise<boolean> {
    return (await this.#json<UnscheduledAnswer>('unschedule', { body: { key } })).dropped
  }

  /** The server takes the name of the sender from the token. */
  rename(title: string, { id }: RenameOptions = {}): Promise<RenamedSession> {
    return this.#json('rename', { body: { title }, ...keyOf(id) })
  }

  /** The server takes the name of the sender from the token. */
  pursue({ id, by: _by, ...task }: PursueOptions): Promise<PursuitReceipt> {
    return this.#json('pursue', { body: task, ...keyOf(id) })
  }

  async undo(run?: number): Promise<readonly UndoneCall[]> {
    return (await this.#json<UndoneAnswer>('undo', { body: { run } })).undone
  }

  async fork(options: ForkOptions = {}): Promise<ClientSession> {
    const { session } = await this.#json<OpenedAnswer>('fork', { body: options })
    return new ClientSession({ ...this.#remote, id: session })
  }

  async blob(ref: string | Pick<BlobRef, 'hash'>): Promise<Blob | null> {
    const hash = typeof ref === 'string' ? ref : ref.hash
    if (!/^[0-9a-f]{64}$/.test(hash))
      throw new Fault('invalid_input', 'A blob is read by its hash, or by its reference.')
    const response = await this.#remote.wires.once('blob', { params: { id: this.id, hash } })
    if (!response.ok) return null
    const media = response.headers.get('x-media-type') ?? 'application/octet-stream'
    return { hash, media, data: new Uint8Array(await response.arrayBuffer()) }
  }

  async pin(what: string | number, { off = false }: PinOptions = {}): Promise<PinReceipt> {
    if (!off) return this.#json('pin', { body: typeof what === 'string' ? { text: what } : { seq: what } })
    await this.#json('unpin', { params: { seq: String(what) } })
    return { seq: Number(String(what).replace(/^\^+/, '')) }
  }

  compact(): Promise<never> {
    return Promise.reject(unsupportedFault('compact'))
  }

  spawn(): Promise<never> {
    return Promise.reject(unsupportedFault('spawn'))
  }

  events(filter: EventsFilter = {}): Promise<EventPage> {
    return readEventPage(this.#remote.logs, this.id, filter)
  }

  /** The log names the token's principal. */
  async close(): Promise<void> {
    await this.#json('close')
  }
}

/** The fields of the question that may be handed back with the decision. */
type ShownFields = Pick<PendingCall, 'tool' | 'class' | 'n' | 'roles'>

/** Your own id is sent as the key of the request: the same id twice is one message. */
function keyOf(id: string | undefined): Pick<RouteRequest, 'headers'> {
  return id === undefined ? {} : { headers: { 'idempotency-key': id } }
}
