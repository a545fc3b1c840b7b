// The shape of an exported session and of every event in it, as checks. What the events mean together is sound.ts.
import type {
  Account,
  Allow,
  BlobRef,
  CallStatus,
  EffectClass,
  FailedReason,
  Gate,
  Limits,
  ModelFailureClass,
  NoteKind,
  Outcome,
  Outside,
  Part,
  Proposal,
  Shortage,
  Terms,
  Usage,
  Verdict,
} from '../kernel/content.ts'
import type { Envelope, Event, Setup } from '../kernel/event.ts'
import type { Failure, FailureKind } from '../kernel/failure.ts'
import {
  amount,
  callName,
  type Check,
  constant,
  type Fields,
  flag,
  hashName,
  json,
  list,
  moment,
  name,
  object,
  oneOf,
  optional,
  orNull,
  table,
  text,
  textOr,
  variants,
  whole,
  yes,
} from './fields.ts'

/** A session in a file: its log, what the log refers to, and the logs it reads through. Plain JSON. */
export type Portable = {
  readonly format: 'terret.session'
  readonly version: 1
  readonly session: string
  readonly events: readonly Event[]
  /** By hash, in base64. */
  readonly blobs: Readonly<Record<string, PortableBlob>>
  /** For a fork: the log it came from up to that event, then that one's, and so on. */
  readonly parents?: readonly PortableLog[]
  /** Of all the rest. It finds damage and edits; it is no signature. */
  readonly checksum: string
}
export type PortableBlob = { readonly media: string; readonly data: string }
export type PortableLog = { readonly session: string; readonly events: readonly Event[] }

const failure = object<Failure>({
  kind: oneOf<FailureKind>({
    InvalidInput: true,
    NotFound: true,
    Denied: true,
    Timeout: true,
    NonZeroExit: true,
    Unavailable: true,
    Interrupted: true,
    Unknown: true,
    Failed: true,
  }),
  message: text,
  recoverable: optional(flag),
})

const blobFields: Fields<Omit<BlobRef, 'type'>> = { hash: hashName, bytes: whole, media: text, name: optional(text) }
const blobRef = variants<BlobRef>({ blob: blobFields })

const parts = list(
  variants<Part>({
    text: { text },
    reasoning: { text, opaque: optional(json) },
    blob: blobFields,
    data: { media: text, data: text, name: optional(text) },
  }),
)

const outsideFields: Fields<Omit<Outside, 'type'>> = {
  child: optional(name),
  answers: optional(object<NonNullable<Outside['answers']>>({ session: name, call: callName })),
}

const gate = variants<Gate>({
  ask: {
    class: text,
    n: whole,
    roles: list(text),
    expiresAt: orNull(moment),
    outside: optional(variants<Outside>({ outside: outsideFields })),
    each: optional(yes),
  },
  refuse: {
    failure,
    status: optional(constant('denied')),
    retryKind: optional(text),
    metadata: optional(json),
    ends: optional(text),
  },
  outside: outsideFields,
})

const terms: Fields<Terms> = {
  gate: optional(gate),
  digest: optional(hashName),
  place: optional(hashName),
  same: optional(hashName),
  effect: oneOf<EffectClass>({ read: true, idempotent: true, once: true }),
  timeoutMs: amount,
  sequential: optional(yes),
  reconcile: optional(yes),
  retries: optional(whole),
  blocks: optional(yes),
  clear: optional(yes),
}

const proposal = object<Proposal>({ id: text, tool: text, args: json, raw: optional(text), ...terms })

const failureClass = oneOf<ModelFailureClass>({
  rate_limit: true,
  auth: true,
  overflow: true,
  bad_request: true,
  server: true,
  network: true,
  timeout: true,
  other: true,
  lost: true,
  superseded: true,
  interrupted: true,
})

const outcome = variants<Outcome>({
  completed: {},
  interrupted: { hook: optional(text) },
  limit: {
    limit: oneOf<Extract<Outcome, { type: 'limit' }>['limit']>({
      model_requests: true,
      tool_calls: true,
      active_ms: true,
      usd: true,
      tokens: true,
    }),
    account: optional(oneOf<Account>({ run: true, session: true, tree: true, day: true })),
    short: optional(object<Shortage>({ limit: amount, spent: amount, held: amount, needed: amount })),
  },
  halted: { reason: text },
  failed: {
    reason: oneOf<FailedReason>({
      provider_error: true,
      output_validation_failed: true,
      tool_retries_exceeded: true,
      unexpected_model_behavior: true,
      empty_answer: true,
      crashed_too_often: true,
      prepare_failed: true,
      hook_error: true,
      planner_failed: true,
      refusal: true,
    }),
    failure,
    class: optional(failureClass),
  },
})

const verdict = variants<Verdict>({
  final: { output: optional(json) },
  continue: {},
  retry_tool_output: { call: whole, text },
  retry_user_message: { text },
  stop: { reason: text, as: optional(outcome) },
  unexpected: { reason: text },
  empty: { boost: optional(yes) },
})

const usage = object<Usage>({
  inputTokens: amount,
  outputTokens: amount,
  cachedTokens: optional(amount),
  cacheWriteTokens: optional(amount),
  reasoningTokens: optional(amount),
})

const spent = { usage: optional(usage), cost: optional(amount), assumed: optional(yes) }

const limits = object<Limits>({
  modelRequests: amount,
  modelAttempts: orNull(amount),
  modelMs: amount,
  activeMs: amount,
  lossesMax: amount,
  hold: amount,
  toolCalls: orNull(amount),
  toolRetries: amount,
  outputRetries: amount,
  parallel: amount,
  tokens: optional(orNull(amount)),
  depth: optional(amount),
  emptyRetries: optional(amount),
  patienceMs: optional(amount),
})

const setup: Fields<Setup> = {
  toolset: hashName,
  instructions: hashName,
  policy: optional(hashName),
  code: optional(text),
  warnings: optional(list(text)),
}

const stamp: Fields<Envelope> = { seq: whole, at: moment, wall: optional(moment), epoch: whole }
const seqs = list(whole)

type OfType<T extends Event['type']> = Extract<Event, { type: T }>
type OriginOf<K extends 'parent' | 'fork'> = NonNullable<OfType<'session.created'>[K]>

const event: Check<Event> = variants<Event>({
  'user.message': {
    ...stamp,
    id: name,
    parts,
    when: oneOf<OfType<'user.message'>['when']>({ next: true, after: true, now: true }),
    by: optional(text),
    patienceMs: optional(amount),
  },
  'user.tool_confirmation': {
    ...stamp,
    id: name,
    call: callName,
    digest: text,
    allow: flag,
    by: text,
    role: optional(text),
    why: optional(text),
    remember: optional(json),
    scope: optional(constant('run')),
    under: optional(callName),
  },
  'user.custom_tool_result': {
    ...stamp,
    id: name,
    call: callName,
    ok: flag,
    content: text,
    by: optional(text),
    metadata: optional(json),
    parent: optional(callName),
    denied: optional(yes),
  },
  'user.interrupt': {
    ...stamp,
    id: name,
    mode: oneOf<OfType<'user.interrupt'>['mode']>({ stop: true, pause: true, resume: true }),
    run: optional(whole),
  },
  'session.created': {
    ...stamp,
    agent: name,
    planner: text,
    parent: optional(
      object<OriginOf<'parent'>>({
        session: name,
        call: callName,
        root: name,
        depth: whole,
        parks: optional(yes),
        reader: optional(name),
      }),
    ),
    environment: optional(text),
    attachments: optional(list(blobRef)),
    fork: optional(object<OriginOf<'fork'>>({ session: name, seq: whole })),
  },
  'run.started': {
    ...stamp,
    inputs: seqs,
    wakes: list(text),
    limits,
    ...setup,
    foreign: optional(yes),
  },
  'model.started': {
    ...stamp,
    shows: seqs,
    allow: optional(oneOf<Allow>({ all: true, writers: true, none: true })),
    held: optional(amount),
    boost: optional(yes),
  },
  'agent.message': {
    ...stamp,
    parts,
    calls: list(proposal),
    verdict,
    ...spent,
    route: optional(text),
    missed: optional(json),
    finish: optional(oneOf<NonNullable<OfType<'agent.message'>['finish']>>({ length: true, refusal: true })),
  },
  'model.failed': {
    ...stamp,
    class: failureClass,
    message: text,
    retryable: flag,
    route: optional(text),
    retryAt: optional(moment),
    partial: optional(text),
    unasked: optional(yes),
    ...spent,
  },
  'agent.tool_use': { ...stamp, call: callName },
  'agent.custom_tool_use': { ...stamp, call: callName },
  'agent.tool_result': {
    ...stamp,
    call: callName,
    status: oneOf<CallStatus>({ ok: true, error: true, denied: true, aborted: true, timeout: true, unknown: true }),
    content: textOr(blobRef),
    from: optional(whole),
    failure: optional(failure),
    retryKind: optional(text),
    metadata: optional(json),
    ends: optional(text),
    ...spent,
  },
  'context.compacted': {
    ...stamp,
    cut: optional(whole),
    summary: optional(text),
    cleared: optional(whole),
    cost: optional(amount),
  },
  'note.added': {
    ...stamp,
    kind: oneOf<NoteKind>({ limit: true, nudge: true, correction: true, learning: true, undo: true, context: true }),
    text,
  },
  'wake.scheduled': { ...stamp, due: moment, reason: text, key: text, urgent: optional(yes) },
  'run.deferred': { ...stamp, message: text, retryAt: moment, waitedMs: amount },
  'run.settled': { ...stamp, outcome, inputs: optional(seqs), wakes: optional(list(text)) },
  'session.closed': stamp,
  'session.imported': { ...stamp, from: name },
  'run.reviewed': { ...stamp, limits, ...setup },
  'call.reviewed': { ...stamp, call: callName, ...terms },
})

export const portable: Check<Portable> = object<Portable>({
  format: constant('terret.session'),
  version: constant(1),
  session: name,
  events: list(event),
  blobs: table(hashName, object<PortableBlob>({ media: text, data: text })),
  parents: optional(list(object<PortableLog>({ session: name, events: list(event) }))),
  checksum: hashName,
})
