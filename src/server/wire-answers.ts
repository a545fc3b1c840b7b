// The JSON Schemas (2020-12) of what routes answer. Each is held to its type: a field that the type has and the schema does not name, or
// names wrongly as optional, does not compile. Objects are open: a later version may say more. References to names that are not here, such
// as `Part`, are to the types of events, which the OpenAPI document adds.
import type { Outcome } from '../kernel/content.ts'
import type {
  AgentsAnswer,
  Card,
  Damaged,
  DoneAnswer,
  DueAnswer,
  EventsAnswer,
  Health,
  Me,
  Message,
  MessagesAnswer,
  OpenedAnswer,
  PendingAnswer,
  PinnedAnswer,
  PinsAnswer,
  RemovedAnswer,
  ResultAnswer,
  SessionAnswer,
  SessionPage,
  StateAnswer,
  Status,
  TokenMade,
  TokenRow,
  TokensAnswer,
  UndoneAnswer,
  UsageAnswer,
  WireAccount,
  WireAgent,
  WireCall,
  WireCard,
  WireError,
  WirePending,
  WireReceipt,
  WireResult,
  WireTool,
} from './wire.ts'
import { type AnswerName, flag, REACH, ROLES, type Schema, text, whole, words } from './wire-schemas.ts'

const number = { type: 'number' } as const
const anything = {} as const
const listOf = (items: Schema): Schema => ({ type: 'array', items })
const anyObject = { type: 'object', additionalProperties: true } as const
const yes = { const: true } as const
const texts = listOf(text)
const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: 'null' }] })
const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })
/** Every word of a type. */
const wordsOf = <T extends string>(all: Readonly<Record<T, true>>): Schema => words(...Object.keys(all))

type OptionalKey<T> = { [K in keyof T]-?: object extends Pick<T, K> ? K : never }[keyof T]
type RequiredFields<T> = { readonly [K in Exclude<keyof T, OptionalKey<T>>]-?: Schema }
type OptionalFields<T> = { readonly [K in OptionalKey<T>]-?: Schema }

function answerOf<T>(required: RequiredFields<T>, optional: OptionalFields<T>): Schema {
  return { type: 'object', properties: { ...required, ...optional }, required: Object.keys(required) }
}

const damaged = answerOf<Damaged>({ seq: whole, reason: text }, {})

const STATUSES = wordsOf<Status>({
  idle: true,
  running: true,
  rescheduling: true,
  requires_action: true,
  terminated: true,
})
const OUTCOMES = wordsOf<Outcome['type']>({
  completed: true,
  interrupted: true,
  limit: true,
  halted: true,
  failed: true,
})

const card = answerOf<WireCard>(
  {
    session: text,
    agent: text,
    root: text,
    status: STATUSES,
    due: orNull(number),
    seq: whole,
    at: number,
    cost: number,
    asks: texts,
    waits: texts,
    wakes: whole,
    outcome: orNull(OUTCOMES),
    costUsd: number,
    treeCostUsd: number,
  },
  {
    program: text,
    parent: text,
    task: text,
    trouble: answerOf<NonNullable<Card['trouble']>>({ attempts: whole, reason: text, until: orNull(number) }, {}),
    outage: answerOf<NonNullable<Card['outage']>>({ reason: text, tries: whole }, { begins: { const: false } }),
    urgent: yes,
    cause: text,
    limit: ref('LimitName'),
    unknown: whole,
    held: yes,
    folder: text,
    labels: ref('Labels'),
    title: text,
    created: number,
    owner: text,
    tokens: number,
    treeCost: number,
    elsewhere: text,
  },
)

const pending = answerOf<WirePending>(
  {
    callId: text,
    tool: text,
    args: anything,
    needs: wordsOf<WirePending['needs']>({ approval: true, answer: true }),
    sessionId: text,
    path: texts,
    costUsd: number,
    treeCostUsd: number,
  },
  {
    digest: text,
    expiresAt: orNull(number),
    class: text,
    n: whole,
    roles: texts,
    votes: texts,
    files: listOf(ref('FileState')),
    edited: answerOf<NonNullable<WirePending['edited']>>({ by: text, args: anything }, {}),
    amounts: answerOf<NonNullable<WirePending['amounts']>>(
      { limitUsd: number, spentUsd: number, heldUsd: number, neededUsd: number },
      {},
    ),
    each: yes,
    covered: answerOf<NonNullable<WirePending['covered']>>({ call: text, by: text }, {}),
    denied: yes,
    agent: text,
    title: text,
    labels: ref('Labels'),
    preview: anything,
    since: number,
    said: text,
    effect: ref('EffectClass'),
  },
)

const event = { type: 'object', properties: { seq: whole, at: number, epoch: whole, type: text } }

type ByRole<R extends Message['role']> = Extract<Message, { role: R }>
const parts = listOf(ref('Part'))
const content: Schema = { anyOf: [text, ref('BlobRef')] }
const shownCall = answerOf<ByRole<'assistant'>['calls'][number]>(
  { key: text, id: text, tool: text, args: anything },
  { raw: text },
)
const message: Schema = {
  anyOf: [
    answerOf<ByRole<'user'>>({ role: { const: 'user' }, seq: whole, parts }, { pin: flag, report: whole }),
    answerOf<ByRole<'assistant'>>(
      { role: { const: 'assistant' }, seq: whole, parts, calls: listOf(shownCall) },
      { cut: yes },
    ),
    answerOf<ByRole<'tool'>>(
      { role: { const: 'tool' }, seq: whole, call: text, id: text, tool: text, ok: flag, content },
      {
        fits: answerOf<NonNullable<ByRole<'tool'>['fits']>>({ chars: whole, token: text }, {}),
        status: ref('CallStatus'),
        kind: text,
        parts,
      },
    ),
  ],
}

const classified = answerOf<NonNullable<WireCall['failure']>>(
  { class: text, category: text, cause: text, nextAction: text, recoverable: flag },
  { kind: ref('FailureKind') },
)

const call = answerOf<WireCall>(
  { callId: text, tool: text, args: anything, status: orNull(ref('CallStatus')), content, chars: whole },
  {
    edited: answerOf<NonNullable<WireCall['edited']>>({ by: text, args: anything }, {}),
    parts: listOf(ref('BlobRef')),
    failure: classified,
    approved: answerOf<NonNullable<WireCall['approved']>>({ allow: flag, by: text }, { why: text, voters: texts }),
  },
)

const spent = answerOf<WireResult['usage']>(
  {
    inputTokens: number,
    outputTokens: number,
    cachedTokens: number,
    cacheWriteTokens: number,
    reasoningTokens: number,
    modelRequests: number,
    toolCalls: number,
    cancelledToolCalls: number,
    outputRetries: number,
    toolRetries: { type: 'object', additionalProperties: number },
  },
  {},
)

const result = answerOf<WireResult>(
  {
    sessionId: text,
    status: wordsOf<WireResult['status']>({
      completed: true,
      requires_action: true,
      sleeping: true,
      interrupted: true,
      limit: true,
      halted: true,
      failed: true,
    }),
    stopReason: text,
    text,
    usage: spent,
    costUsd: number,
    treeCostUsd: number,
    cost: number,
    own: answerOf<WireResult['own']>({ usage: spent, cost: number }, {}),
    context: orNull(answerOf<NonNullable<WireResult['context']>>({ tokens: number, window: orNull(number) }, {})),
    flags: answerOf<WireResult['flags']>({ paused: flag, capped: flag, halted: flag, empty: flag }, { held: yes }),
    calls: listOf(ref('Call')),
    pending: listOf(ref('Pending')),
    warnings: texts,
    metadata: anyObject,
    messages: listOf(ref('Message')),
    sources: listOf(answerOf<WireResult['sources'][number]>({ type: { const: 'source' }, url: text }, { title: text })),
    files: listOf(ref('BlobRef')),
  },
  {
    output: anything,
    cached: yes,
    reason: text,
    until: orNull(number),
    limit: ref('LimitName'),
    account: ref('Account'),
    short: ref('Shortage'),
    said: text,
    endedBy: text,
    failure: answerOf<NonNullable<WireResult['failure']>>(
      { kind: ref('FailureKind'), message: text, classified: orNull(classified) },
      { recoverable: flag },
    ),
  },
)

const principal = { name: text, role: ROLES, roles: texts, reach: REACH } as const
const clock = { now: number, store: text } as const
const account = answerOf<WireAccount>(
  {
    account: ref('Account'),
    id: text,
    agent: text,
    limitUsd: orNull(number),
    heldUsd: number,
    spentUsd: number,
    assumedUsd: number,
  },
  {},
)
const tool = answerOf<WireTool>(
  { name: text, description: text, kind: text, effect: text, approval: anything, outside: flag },
  {},
)
const agent = answerOf<WireAgent>(
  {
    name: text,
    model: text,
    planner: text,
    tools: listOf(tool),
    sources: texts,
    limits: ref('Limits'),
    budget: anything,
    children: texts,
    graph: anything,
  },
  {},
)
const health = answerOf<Health>(
  {
    ok: flag,
    version: text,
    now: number,
    startedAt: number,
    store: text,
    durability: answerOf<Health['durability']>(
      {
        kind: wordsOf<Health['durability']['kind']>({ memory: true, sqlite: true, other: true }),
        survives: text,
        appendMs: orNull(number),
      },
      { appendP99Ms: number },
    ),
    trouble: orNull(text),
    hosts: texts,
    drives: flag,
    driving: whole,
    streams: whole,
    due: whole,
  },
  { code: text, bytes: number, sessions: whole, leases: whole, waitedMs: number, network: anyObject },
)

/** All of these are named in the document. `Event` here is what every event has; the document has each of them whole. */
export const ANSWERS: Readonly<Record<AnswerName, Schema>> = {
  Error: answerOf<WireError>({ error: answerOf<WireError['error']>({ code: text, message: text }, {}) }, {}),
  Health: health,
  Me: answerOf<Me>({ ...principal, ...clock }, {}),
  Card: card,
  Sessions: answerOf<SessionPage>({ sessions: listOf(ref('Card')), next: orNull(text), ...clock }, {}),
  Pending: pending,
  Session: answerOf<SessionAnswer>(
    { card: ref('Card'), pending: listOf(ref('Pending')), accounts: listOf(account), head: whole, ...clock },
    { damaged },
  ),
  Event: { ...event, required: ['seq', 'at', 'epoch', 'type'] },
  Events: answerOf<EventsAnswer>(
    { events: listOf(ref('Event')), head: whole, after: orNull(whole), before: orNull(whole) },
    { scanned: whole, damaged },
  ),
  Message: message,
  Messages: answerOf<MessagesAnswer>({ messages: listOf(ref('Message')), head: whole }, {}),
  State: answerOf<StateAnswer>({ seq: whole, head: whole, session: anyObject }, { damaged }),
  Call: call,
  Result: answerOf<ResultAnswer>({ open: flag, result: orNull(result) }, {}),
  Receipt: answerOf<WireReceipt>({ eventId: text, seq: whole, duplicate: flag, queued: flag }, { elsewhere: text }),
  Opened: answerOf<OpenedAnswer>({ session: text, receipt: orNull(ref('Receipt')) }, {}),
  Undone: answerOf<UndoneAnswer>(
    {
      undone: listOf(
        answerOf<UndoneAnswer['undone'][number]>(
          {
            call: text,
            what: text,
            result: wordsOf<UndoneAnswer['undone'][number]['result']>({
              restored: true,
              removed: true,
              changed_since: true,
              not_kept: true,
            }),
          },
          {},
        ),
      ),
    },
    {},
  ),
  Pins: answerOf<PinsAnswer>(
    { pins: listOf(answerOf<PinsAnswer['pins'][number]>({ seq: whole, text }, { inherited: yes, name: text })) },
    {},
  ),
  Pinned: answerOf<PinnedAnswer>({ seq: whole }, {}),
  Done: answerOf<DoneAnswer>({ ok: yes }, {}),
  Removed: answerOf<RemovedAnswer>(
    {
      removed: listOf(
        answerOf<RemovedAnswer['removed'][number]>(
          { session: text, agent: text, events: whole, bytes: number, at: number, by: text },
          { worktrees: listOf(answerOf<{ path: string; branch: string }>({ path: text, branch: text }, {})) },
        ),
      ),
    },
    {},
  ),
  PendingList: answerOf<PendingAnswer>(
    { pending: listOf(ref('Pending')), total: whole, sessions: listOf(ref('Card')), now: number },
    {},
  ),
  Agents: answerOf<AgentsAnswer>({ agents: listOf(agent) }, {}),
  Usage: answerOf<UsageAnswer>(
    {
      rows: listOf(
        answerOf<UsageAnswer['rows'][number]>(
          {
            day: text,
            agent: text,
            model: text,
            usd: number,
            inputTokens: number,
            outputTokens: number,
            replies: whole,
          },
          {},
        ),
      ),
      complete: flag,
      now: number,
      hourUsd: number,
    },
    {},
  ),
  Due: answerOf<DueAnswer>(
    {
      due: listOf(
        answerOf<DueAnswer['due'][number]>(
          { session: text, agent: text, due: number, wakes: whole },
          { title: text, reason: text, tries: whole },
        ),
      ),
      now: number,
    },
    {},
  ),
  Tokens: answerOf<TokensAnswer>(
    { tokens: listOf(answerOf<TokenRow>({ ...principal, made: number }, { expires: number })) },
    {},
  ),
  TokenMade: answerOf<TokenMade>({ ...principal, made: number, token: text }, { expires: number }),
  Document: { ...anyObject, properties: { openapi: text, paths: anyObject }, required: ['openapi', 'paths'] },
}
