// The JSON Schemas (2020-12) of answers. Each is tied to its type: a field that is missing in the schema, or wrongly
// optional, does not compile. Objects are open, since later versions may add fields. References to names not defined
// here, such as `Part`, point to event schemas that the OpenAPI document adds.
import type { Outcome } from '../kernel/content.ts'
import type {
  AgentsAnswer,
  Card,
  Damaged,
  DoneAnswer,
  CronChangedAnswer,
  CronJobRow,
  CronJobsAnswer,
  DueAnswer,
  EventsAnswer,
  WireHealth,
  Me,
  Message,
  MessagesAnswer,
  OpenedAnswer,
  LetterDecidedAnswer,
  LetterRow,
  LettersAnswer,
  TriggeredAnswer,
  TriggerRow,
  TriggersAnswer,
  TriggerSourceRow,
  PendingAnswer,
  PinnedAnswer,
  PinsAnswer,
  PursuedAnswer,
  RemovedAnswer,
  RenamedAnswer,
  ResultAnswer,
  ScheduledAnswer,
  ScheduledRow,
  SessionAnswer,
  SessionPage,
  StateAnswer,
  Status,
  TokenMade,
  TokenRow,
  TokensAnswer,
  UndoneAnswer,
  UnscheduledAnswer,
  UsageAnswer,
  WhatIfAnswer,
  WireAccount,
  WireAgent,
  WireCall,
  WireCard,
  WireError,
  WireGrade,
  WirePending,
  WirePursuit,
  WireReceipt,
  WireResult,
  WireTool,
} from './wire.ts'
import type {
  CaseAnswer,
  EvalCaseRow,
  EvalComparedCase,
  EvalComparison,
  EvalCounts,
  EvalInterval,
  EvalRow,
  EvalRunAnswer,
  EvalsAnswer,
  EvalScore,
  EvalScorePart,
  EvalStatus,
  EvalTrial,
  EvalVerdict,
  WireReport,
} from './wire-evals.ts'
import {
  type AnswerName,
  flagSchema,
  REACH_SCHEMA,
  ROLE_SCHEMA,
  type WireSchema,
  textSchema,
  wholeSchema,
  oneOfWords,
} from './wire-schemas.ts'

const number = { type: 'number' } as const
const anything = {} as const
const listSchema = (items: WireSchema): WireSchema => ({ type: 'array', items })
const anyObject = { type: 'object', additionalProperties: true } as const
const yes = { const: true } as const
const texts = listSchema(textSchema)
const nullOr = (schema: WireSchema): WireSchema => ({ anyOf: [schema, { type: 'null' }] })
const schemaRef = (name: string): WireSchema => ({ $ref: `#/components/schemas/${name}` })
/** A schema of all members of a string union. */
const wordsSchema = <T extends string>(all: Readonly<Record<T, true>>): WireSchema => oneOfWords(...Object.keys(all))

type OptionalKey<T> = { [K in keyof T]-?: object extends Pick<T, K> ? K : never }[keyof T]
type RequiredFields<T> = { readonly [K in Exclude<keyof T, OptionalKey<T>>]-?: WireSchema }
type OptionalFields<T> = { readonly [K in OptionalKey<T>]-?: WireSchema }

function answerSchema<T>(required: RequiredFields<T>, optional: OptionalFields<T>): WireSchema {
  return { type: 'object', properties: { ...required, ...optional }, required: Object.keys(required) }
}

const damaged = answerSchema<Damaged>({ seq: wholeSchema, reason: textSchema }, {})

const STATUSES = wordsSchema<Status>({
  idle: true,
  running: true,
  rescheduling: true,
  requires_action: true,
  terminated: true,
})
const OUTCOMES = wordsSchema<Outcome['type']>({
  completed: true,
  interrupted: true,
  limit: true,
  halted: true,
  failed: true,
})

const card = answerSchema<WireCard>(
  {
    session: textSchema,
    agent: textSchema,
    root: textSchema,
    status: STATUSES,
    due: nullOr(number),
    seq: wholeSchema,
    at: number,
    cost: number,
    asks: texts,
    waits: texts,
    wakes: wholeSchema,
    outcome: nullOr(OUTCOMES),
    costUsd: number,
    treeCostUsd: number,
  },
  {
    program: textSchema,
    parent: textSchema,
    task: textSchema,
    trouble: answerSchema<NonNullable<Card['trouble']>>(
      { attempts: wholeSchema, reason: textSchema, until: nullOr(number) },
      {},
    ),
    outage: answerSchema<NonNullable<Card['outage']>>(
      { reason: textSchema, tries: wholeSchema },
      { begins: { const: false } },
    ),
    urgent: yes,
    cause: textSchema,
    limit: schemaRef('LimitName'),
    unknown: wholeSchema,
    held: yes,
    folder: textSchema,
    labels: schemaRef('Labels'),
    title: textSchema,
    created: number,
    owner: textSchema,
    tokens: number,
    treeCost: number,
    elsewhere: textSchema,
  },
)

const pending = answerSchema<WirePending>(
  {
    callId: textSchema,
    tool: textSchema,
    args: anything,
    needs: wordsSchema<WirePending['needs']>({ approval: true, answer: true }),
    sessionId: textSchema,
    path: texts,
    costUsd: number,
    treeCostUsd: number,
  },
  {
    digest: textSchema,
    expiresAt: nullOr(number),
    class: textSchema,
    n: wholeSchema,
    roles: texts,
    votes: texts,
    files: listSchema(schemaRef('FileState')),
    edited: answerSchema<NonNullable<WirePending['edited']>>({ by: textSchema, args: anything }, {}),
    amounts: answerSchema<NonNullable<WirePending['amounts']>>(
      { limitUsd: number, spentUsd: number, heldUsd: number, neededUsd: number },
      {},
    ),
    each: yes,
    covered: answerSchema<NonNullable<WirePending['covered']>>({ call: textSchema, by: textSchema }, {}),
    denied: yes,
    agent: textSchema,
    title: textSchema,
    labels: schemaRef('Labels'),
    preview: anything,
    since: number,
    said: textSchema,
    effect: schemaRef('EffectClass'),
  },
)

const event = { type: 'object', properties: { seq: wholeSchema, at: number, epoch: wholeSchema, type: textSchema } }

type ByRole<R extends Message['role']> = Extract<Message, { role: R }>
const parts = listSchema(schemaRef('Part'))
const content: WireSchema = { anyOf: [textSchema, schemaRef('BlobRef')] }
const shownCall = answerSchema<ByRole<'assistant'>['calls'][number]>(
  { key: textSchema, id: textSchema, tool: textSchema, args: anything },
  { raw: textSchema, text: textSchema },
)
const message: WireSchema = {
  anyOf: [
    answerSchema<ByRole<'user'>>(
      { role: { const: 'user' }, seq: wholeSchema, parts },
      { pin: flagSchema, report: wholeSchema },
    ),
    answerSchema<ByRole<'assistant'>>(
      { role: { const: 'assistant' }, seq: wholeSchema, parts, calls: listSchema(shownCall) },
      { cut: yes },
    ),
    answerSchema<ByRole<'tool'>>(
      {
        role: { const: 'tool' },
        seq: wholeSchema,
        call: textSchema,
        id: textSchema,
        tool: textSchema,
        ok: flagSchema,
        content,
      },
      {
        fits: answerSchema<NonNullable<ByRole<'tool'>['fits']>>({ chars: wholeSchema, token: textSchema }, {}),
        status: schemaRef('CallStatus'),
        kind: textSchema,
        parts,
      },
    ),
  ],
}

const classified = answerSchema<NonNullable<WireCall['failure']>>(
  { class: textSchema, category: textSchema, cause: textSchema, nextAction: textSchema, recoverable: flagSchema },
  { kind: schemaRef('FailureKind') },
)

const call = answerSchema<WireCall>(
  {
    callId: textSchema,
    tool: textSchema,
    args: anything,
    status: nullOr(schemaRef('CallStatus')),
    content,
    chars: wholeSchema,
  },
  {
    edited: answerSchema<NonNullable<WireCall['edited']>>({ by: textSchema, args: anything }, {}),
    parts: listSchema(schemaRef('BlobRef')),
    failure: classified,
    approved: answerSchema<NonNullable<WireCall['approved']>>(
      { allow: flagSchema, by: textSchema },
      { why: textSchema, voters: texts },
    ),
  },
)

const spent = answerSchema<WireResult['usage']>(
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

const result = answerSchema<WireResult>(
  {
    sessionId: textSchema,
    status: wordsSchema<WireResult['status']>({
      completed: true,
      requires_action: true,
      sleeping: true,
      interrupted: true,
      limit: true,
      halted: true,
      failed: true,
    }),
    stopReason: textSchema,
    text: textSchema,
    usage: spent,
    costUsd: number,
    treeCostUsd: number,
    cost: number,
    own: answerSchema<WireResult['own']>({ usage: spent, cost: number }, {}),
    context: nullOr(answerSchema<NonNullable<WireResult['context']>>({ tokens: number, window: nullOr(number) }, {})),
    flags: answerSchema<WireResult['flags']>(
      { paused: flagSchema, capped: flagSchema, halted: flagSchema, empty: flagSchema },
      { held: yes },
    ),
    calls: listSchema(schemaRef('Call')),
    pending: listSchema(schemaRef('Pending')),
    warnings: texts,
    metadata: anyObject,
    messages: listSchema(schemaRef('Message')),
    sources: listSchema(
      answerSchema<WireResult['sources'][number]>(
        { type: { const: 'source' }, url: textSchema },
        { title: textSchema },
      ),
    ),
    files: listSchema(schemaRef('BlobRef')),
  },
  {
    output: anything,
    cached: yes,
    reason: textSchema,
    until: nullOr(number),
    limit: schemaRef('LimitName'),
    account: schemaRef('Account'),
    short: schemaRef('Shortage'),
    said: textSchema,
    endedBy: textSchema,
    failure: answerSchema<NonNullable<WireResult['failure']>>(
      { kind: schemaRef('FailureKind'), message: textSchema, classified: nullOr(classified) },
      { recoverable: flagSchema },
    ),
  },
)

const principal = { name: textSchema, role: ROLE_SCHEMA, roles: texts, reach: REACH_SCHEMA } as const
const clock = { now: number, store: textSchema } as const
const account = answerSchema<WireAccount>(
  {
    account: schemaRef('Account'),
    id: textSchema,
    agent: textSchema,
    limitUsd: nullOr(number),
    heldUsd: number,
    spentUsd: number,
    assumedUsd: number,
  },
  {},
)
const grade = answerSchema<WireGrade>(
  {
    round: wholeSchema,
    state: wordsSchema<WireGrade['state']>({ uncertain: true, fail: true, pass: true }),
    met: wholeSchema,
    of: wholeSchema,
    summary: textSchema,
    at: number,
    session: textSchema,
  },
  {},
)
const pursuit = answerSchema<WirePursuit>(
  {
    state: wordsSchema<WirePursuit['state']>({
      missing_outcome: true,
      blocked: true,
      not_ready: true,
      uncertain: true,
      fail: true,
      pass: true,
    }),
  },
  {
    end: nullOr(
      wordsSchema<NonNullable<WirePursuit['end']>>({
        satisfied: true,
        max_rounds: true,
        failed: true,
        interrupted: true,
        ungraded: true,
      }),
    ),
    why: nullOr(textSchema),
    fingerprint: textSchema,
    description: textSchema,
    rubric: textSchema,
    round: wholeSchema,
    roundsMax: wholeSchema,
    usd: nullOr(number),
    spentUsd: number,
    trend: wordsSchema<NonNullable<WirePursuit['trend']>>({
      first_iteration: true,
      improving: true,
      stable: true,
      regressing: true,
    }),
    history: listSchema(grade),
  },
)
const tool = answerSchema<WireTool>(
  {
    name: textSchema,
    description: textSchema,
    kind: textSchema,
    effect: textSchema,
    approval: anything,
    outside: flagSchema,
  },
  {},
)
const agent = answerSchema<WireAgent>(
  {
    name: textSchema,
    model: textSchema,
    planner: textSchema,
    tools: listSchema(tool),
    sources: texts,
    limits: schemaRef('Limits'),
    budget: anything,
    children: texts,
    graph: anything,
  },
  {},
)
const health = answerSchema<WireHealth>(
  {
    ok: flagSchema,
    version: textSchema,
    now: number,
    startedAt: number,
    store: textSchema,
    durability: answerSchema<WireHealth['durability']>(
      {
        kind: wordsSchema<WireHealth['durability']['kind']>({ memory: true, sqlite: true, other: true }),
        survives: textSchema,
        appendMs: nullOr(number),
      },
      { appendP99Ms: number },
    ),
    trouble: nullOr(textSchema),
    hosts: texts,
    drives: flagSchema,
    driving: wholeSchema,
    streams: wholeSchema,
    due: wholeSchema,
  },
  { code: textSchema, bytes: number, sessions: wholeSchema, leases: wholeSchema, waitedMs: number, network: anyObject },
)

/**
 * All of these are named in the document. `Event` here has only the fields common to all events; the document describes
 * each event type in full.
 */
const cronJob = answerSchema<CronJobRow>(
  {
    name: textSchema,
    session: textSchema,
    zone: textSchema,
    agent: textSchema,
    missed: oneOfWords('skip', 'once', 'all'),
    overlap: oneOfWords('skip', 'queue', 'replace'),
    on: flagSchema,
    next: listSchema(number),
    last: nullOr(
      answerSchema<NonNullable<CronJobRow['last']>>({ session: textSchema, at: number, outcome: nullOr(OUTCOMES) }, {}),
    ),
    waiting: wholeSchema,
    ticks: listSchema({
      type: 'object',
      properties: { at: number, session: textSchema, skipped: textSchema, times: wholeSchema },
      required: ['at'],
    }),
  },
  { line: textSchema, at: number, prompt: textSchema, input: anything, limits: anyObject },
)

const triggerRow = answerSchema<TriggerRow>(
  {
    session: textSchema,
    source: textSchema,
    label: textSchema,
    state: oneOfWords('waiting', 'deferred', 'decided', 'dead', 'stopped'),
    action: nullOr(oneOfWords('drop', 'notify', 'react', 'escalate')),
    path: nullOr(oneOfWords('first', 'first_again', 'second', 'cached')),
    reason: nullOr(textSchema),
    target: nullOr(textSchema),
    at: number,
  },
  {},
)
const triggerSource = answerSchema<TriggerSourceRow>(
  {
    source: textSchema,
    accepted: wholeSchema,
    more: flagSchema,
    dropped: wholeSchema,
    notified: wholeSchema,
    reacted: wholeSchema,
    escalated: wholeSchema,
    deferred: wholeSchema,
    dead: wholeSchema,
  },
  {},
)

const letterRow = answerSchema<LetterRow>(
  {
    lane: textSchema,
    key: textSchema,
    consumer: textSchema,
    session: textSchema,
    tries: wholeSchema,
    reason: textSchema,
    at: number,
  },
  {},
)
const VERDICTS = wordsSchema<EvalVerdict>({ passed: true, failed: true, errored: true, ungraded: true })
const EVAL_STATUSES = wordsSchema<EvalStatus>({ passed: true, failed: true, inconclusive: true })
const evalCounts = answerSchema<EvalCounts>(
  { passed: wholeSchema, failed: wholeSchema, errored: wholeSchema, ungraded: wholeSchema },
  {},
)
const evalInterval = answerSchema<EvalInterval>({ low: number, high: number }, {})
const evalRow = answerSchema<EvalRow>(
  {
    session: textSchema,
    suite: textSchema,
    at: number,
    blueprint: textSchema,
    status: EVAL_STATUSES,
    rate: nullOr(number),
    counts: evalCounts,
  },
  {},
)
const evalScore = answerSchema<EvalScore>(
  { name: textSchema, score: nullOr(number) },
  {
    why: textSchema,
    session: textSchema,
    usd: number,
    parts: listSchema(answerSchema<EvalScorePart>({ name: textSchema, score: nullOr(number) }, { why: textSchema })),
  },
)
const evalTrial = answerSchema<EvalTrial>(
  {
    n: wholeSchema,
    session: textSchema,
    verdict: VERDICTS,
    scores: listSchema(evalScore),
    usd: number,
    ms: number,
    turns: wholeSchema,
    calls: wholeSchema,
  },
  { why: textSchema },
)
const evalReport = answerSchema<WireReport>(
  {
    version: wholeSchema,
    suite: textSchema,
    at: number,
    mode: oneOfWords('live', 'replayed', 'recorded'),
    blueprint: textSchema,
    status: EVAL_STATUSES,
    reasons: texts,
    counts: evalCounts,
    rate: nullOr(number),
    interval: nullOr(evalInterval),
    passAt: anyObject,
    passAll: anyObject,
    cost: answerSchema<WireReport['cost']>({ usd: number, judgeUsd: number }, {}),
    cases: listSchema(answerSchema<EvalCaseRow>({ id: textSchema, trials: listSchema(evalTrial) }, {})),
  },
  {},
)
const evalComparison = answerSchema<EvalComparison>(
  {
    word: oneOfWords('better', 'worse', 'no difference seen'),
    difference: number,
    interval: nullOr(evalInterval),
    text: textSchema,
    shared: wholeSchema,
    cases: listSchema(
      answerSchema<EvalComparedCase>({ id: textSchema, before: nullOr(number), after: nullOr(number) }, {}),
    ),
    cost: answerSchema<EvalComparison['cost']>({ before: number, after: number }, {}),
  },
  {},
)

export const ANSWER_SCHEMAS: Readonly<Record<AnswerName, WireSchema>> = {
  Error: answerSchema<WireError>(
    { error: answerSchema<WireError['error']>({ code: textSchema, message: textSchema }, {}) },
    {},
  ),
  Health: health,
  Me: answerSchema<Me>({ ...principal, ...clock }, {}),
  Card: card,
  Sessions: answerSchema<SessionPage>(
    { sessions: listSchema(schemaRef('Card')), next: nullOr(textSchema), ...clock },
    {},
  ),
  Pending: pending,
  Session: answerSchema<SessionAnswer>(
    {
      card: schemaRef('Card'),
      pending: listSchema(schemaRef('Pending')),
      accounts: listSchema(account),
      head: wholeSchema,
      ...clock,
    },
    { damaged, pursuit },
  ),
  Event: { ...event, required: ['seq', 'at', 'epoch', 'type'] },
  Events: answerSchema<EventsAnswer>(
    {
      events: listSchema(schemaRef('Event')),
      head: wholeSchema,
      after: nullOr(wholeSchema),
      before: nullOr(wholeSchema),
    },
    { scanned: wholeSchema, damaged },
  ),
  Message: message,
  Messages: answerSchema<MessagesAnswer>({ messages: listSchema(schemaRef('Message')), head: wholeSchema }, {}),
  State: answerSchema<StateAnswer>({ seq: wholeSchema, head: wholeSchema, session: anyObject }, { damaged }),
  Call: call,
  Result: answerSchema<ResultAnswer>({ open: flagSchema, result: nullOr(result) }, {}),
  Receipt: answerSchema<WireReceipt>(
    { eventId: textSchema, seq: wholeSchema, duplicate: flagSchema, queued: flagSchema },
    { elsewhere: textSchema },
  ),
  WhatIf: answerSchema<WhatIfAnswer>(
    {
      session: textSchema,
      from: wholeSchema,
      end: wholeSchema,
      events: listSchema(schemaRef('Event')),
      changed: texts,
      drift: wholeSchema,
      missing: listSchema(
        answerSchema<WhatIfAnswer['missing'][number]>(
          { session: textSchema },
          { call: textSchema, tool: textSchema, args: anything },
        ),
      ),
      costUsd: number,
      settled: nullOr(schemaRef('Outcome')),
      text: textSchema,
      parked: listSchema(
        answerSchema<WhatIfAnswer['parked'][number]>(
          { session: textSchema, call: textSchema, tool: textSchema, args: anything, why: textSchema },
          {},
        ),
      ),
    },
    {},
  ),
  Opened: answerSchema<OpenedAnswer>({ session: textSchema, receipt: nullOr(schemaRef('Receipt')) }, {}),
  Triggered: answerSchema<TriggeredAnswer>({ session: textSchema, duplicate: flagSchema }, { notBefore: number }),
  Triggers: answerSchema<TriggersAnswer>(
    { sources: listSchema(triggerSource), triggers: listSchema(triggerRow), now: number },
    {},
  ),
  Letters: answerSchema<LettersAnswer>({ letters: listSchema(letterRow), count: wholeSchema, now: number }, {}),
  LetterDecided: answerSchema<LetterDecidedAnswer>({ decision: oneOfWords('retry', 'drop'), by: textSchema }, {}),
  Evals: answerSchema<EvalsAnswer>({ runs: listSchema(evalRow), now: number }, {}),
  EvalRun: answerSchema<EvalRunAnswer>({ report: evalReport, comparison: nullOr(evalComparison) }, {}),
  Case: answerSchema<CaseAnswer>(
    { id: textSchema, input: { anyOf: [textSchema, texts] } },
    { expected: anything, recording: textSchema },
  ),
  Undone: answerSchema<UndoneAnswer>(
    {
      undone: listSchema(
        answerSchema<UndoneAnswer['undone'][number]>(
          {
            call: textSchema,
            what: textSchema,
            result: wordsSchema<UndoneAnswer['undone'][number]['result']>({
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
  Pins: answerSchema<PinsAnswer>(
    {
      pins: listSchema(
        answerSchema<PinsAnswer['pins'][number]>(
          { seq: wholeSchema, text: textSchema },
          { inherited: yes, name: textSchema },
        ),
      ),
    },
    {},
  ),
  Pinned: answerSchema<PinnedAnswer>({ seq: wholeSchema }, {}),
  Scheduled: answerSchema<ScheduledAnswer>(
    { key: textSchema, due: number, seq: wholeSchema, duplicate: flagSchema },
    { elsewhere: textSchema },
  ),
  Unscheduled: answerSchema<UnscheduledAnswer>({ dropped: flagSchema }, {}),
  Renamed: answerSchema<RenamedAnswer>({ title: textSchema, seq: wholeSchema, duplicate: flagSchema }, {}),
  Pursued: answerSchema<PursuedAnswer>(
    { eventId: textSchema, seq: wholeSchema, duplicate: flagSchema, queued: flagSchema, fingerprint: textSchema },
    {},
  ),
  Done: answerSchema<DoneAnswer>({ ok: yes }, {}),
  Removed: answerSchema<RemovedAnswer>(
    {
      removed: listSchema(
        answerSchema<RemovedAnswer['removed'][number]>(
          { session: textSchema, agent: textSchema, events: wholeSchema, bytes: number, at: number, by: textSchema },
          {
            worktrees: listSchema(
              answerSchema<{ path: string; branch: string }>({ path: textSchema, branch: textSchema }, {}),
            ),
          },
        ),
      ),
    },
    {},
  ),
  PendingList: answerSchema<PendingAnswer>(
    {
      pending: listSchema(schemaRef('Pending')),
      next: nullOr(textSchema),
      sessions: listSchema(schemaRef('Card')),
      now: number,
    },
    {},
  ),
  Agents: answerSchema<AgentsAnswer>({ agents: listSchema(agent) }, {}),
  Usage: answerSchema<UsageAnswer>(
    {
      rows: listSchema(
        answerSchema<UsageAnswer['rows'][number]>(
          {
            day: textSchema,
            agent: textSchema,
            model: textSchema,
            usd: number,
            inputTokens: number,
            outputTokens: number,
            replies: wholeSchema,
          },
          {},
        ),
      ),
      complete: flagSchema,
      now: number,
      hourUsd: number,
    },
    {},
  ),
  Due: answerSchema<DueAnswer>(
    {
      due: listSchema(
        answerSchema<DueAnswer['due'][number]>(
          { session: textSchema, agent: textSchema, due: number, wakes: wholeSchema },
          {
            title: textSchema,
            reason: textSchema,
            tries: wholeSchema,
            scheduled: listSchema(answerSchema<ScheduledRow>({ due: number, reason: textSchema }, { key: textSchema })),
          },
        ),
      ),
      now: number,
    },
    {},
  ),
  CronJobs: answerSchema<CronJobsAnswer>({ jobs: listSchema(cronJob), next: nullOr(textSchema), now: number }, {}),
  CronChanged: answerSchema<CronChangedAnswer>({ job: nullOr(cronJob) }, { began: textSchema, why: textSchema }),
  Tokens: answerSchema<TokensAnswer>(
    { tokens: listSchema(answerSchema<TokenRow>({ ...principal, made: number }, { expires: number })) },
    {},
  ),
  TokenMade: answerSchema<TokenMade>({ ...principal, made: number, token: textSchema }, { expires: number }),
  Document: { ...anyObject, properties: { openapi: textSchema, paths: anyObject }, required: ['openapi', 'paths'] },
}
