// What the gallery shows: samples, with hostile ones among them.
import type { Event } from '../../../src/kernel/event.ts'
import { DEFAULT_LIMITS } from '../../../src/kernel/limits.ts'
import type { WireCard, WirePending } from '../../../src/server/wire.ts'
import { drawingIn, type GraphDrawing, type NodeStanding } from '../../../src/view/graph-drawing.ts'
import { timelineOf } from '../../../src/view/timeline.ts'

export const NOW = 1_800_000_000_000
const MINUTE = 60_000

// biome-ignore format: a list
export const states = [
  'requires_action', 'running', 'rescheduling', 'completed', 'idle', 'terminated', 'failed', 'unknown', 'quarantined',
  'limit', 'denied', 'lost', 'live', 'polling', 'offline', 'something_new',
]

const card = (session: string, title: string, over: Partial<WireCard> = {}): WireCard => {
  const none = { due: null, seq: 40, asks: [], waits: [], wakes: 0, outcome: null, cost: 0 }
  return {
    session,
    title,
    agent: 'coder',
    root: session,
    status: 'idle',
    at: NOW - 3_000,
    costUsd: 0.41,
    treeCostUsd: 0.41,
    ...none,
    ...over,
  }
}

export const cards: readonly WireCard[] = [
  card('f42', 'Publish the news', { agent: 'report', status: 'requires_action', treeCostUsd: 0.0038 }),
  card('a17', 'Fix the flaky test in the scheduler, then explain what made it flaky and how you know', {
    status: 'running',
    at: NOW,
  }),
  card('c03', 'Summarise the quarter', {
    agent: 'archivist',
    outcome: 'completed',
    at: NOW - 8 * MINUTE,
    treeCostUsd: 1.2044,
  }),
  card('d99', 'Migrate the store', { outcome: 'failed', at: NOW - 200 * MINUTE }),
  card('e01', '<img src=x onerror=alert(1)> \u202Etxt.exe', {
    outcome: 'completed',
    at: NOW - 4_000 * MINUTE,
    treeCostUsd: 0,
  }),
]

export const pending: WirePending = {
  callId: '11.0',
  tool: 'publish',
  args: { path: 'news.html', content: `<h1>News</h1>\n${'All quiet. '.repeat(40)}`, overwrite: true },
  needs: 'approval',
  digest: 'c21a9f'.padEnd(64, '0'),
  expiresAt: NOW + 40 * MINUTE,
  n: 2,
  votes: ['ana'],
  sessionId: 'f42',
  path: ['f42'],
  costUsd: 0.0038,
  treeCostUsd: 0.0038,
  agent: 'report',
}

const body = { inputs: [2], wakes: [], limits: DEFAULT_LIMITS, toolset: 'a'.repeat(64), instructions: 'b'.repeat(64) }
const call = { id: 'c', tool: 'search', args: { query: 'news' }, effect: 'read', timeoutMs: 1_000 } as const
const ask = { type: 'ask', class: 'write', n: 1, roles: [], expiresAt: null } as const
const events: readonly Event[] = [
  { seq: 1, at: NOW, epoch: 0, type: 'session.created', agent: 'report', planner: 'model' },
  {
    seq: 2,
    at: NOW,
    epoch: 0,
    type: 'user.message',
    id: 'm',
    parts: [{ type: 'text', text: 'Publish the news.' }],
    when: 'next',
  },
  { seq: 3, at: NOW, epoch: 1, type: 'run.started', ...body },
  { seq: 4, at: NOW, epoch: 1, type: 'model.started', shows: [2] },
  {
    seq: 5,
    at: NOW + 900,
    epoch: 2,
    type: 'model.failed',
    class: 'lost',
    message: 'The worker was lost.',
    retryable: true,
  },
  { seq: 6, at: NOW + 1_000, epoch: 2, type: 'model.started', shows: [] },
  {
    seq: 7,
    at: NOW + 3_100,
    epoch: 2,
    type: 'agent.message',
    parts: [{ type: 'text', text: 'I look for **what is new**, then I publish it.' }],
    calls: [call, { ...call, id: 'p', tool: 'publish', args: { path: 'news.html' }, effect: 'once', gate: ask }],
    verdict: { type: 'continue' },
    usage: { inputTokens: 1_240, outputTokens: 80 },
    cost: 1_500,
  },
  { seq: 8, at: NOW + 3_100, epoch: 2, type: 'agent.tool_use', call: '7.0' },
  { seq: 9, at: NOW + 3_105, epoch: 2, type: 'agent.tool_result', call: '7.0', status: 'ok', content: '3 items' },
  {
    seq: 10,
    at: NOW + 120 * MINUTE,
    epoch: 0,
    type: 'user.message',
    id: 'n',
    parts: [{ type: 'text', text: 'Still there?' }],
    when: 'next',
  },
]
export const rows = timelineOf(events)

export const hostile =
  'rm -rf \u202E/emoh/ \u200B# \u001B[31mred\u001B[0m\n<script>alert(1)</script> <img src=x onerror="alert(2)">\nпаypal.com \u{E0041}\u00A0end'
export const long = `${'The first part of a long argument. '.repeat(70)}${'middle '.repeat(20_000)}${'the end. '.repeat(120)}`

export const markdown = `## What I found

The scheduler **drops a wake** when two timers share a millisecond; see [the clock](https://example.com/clock?a=1) and
[a trap](javascript:alert(1)). Raw HTML stays text: <b onclick="alert(3)">bold?</b> ![a picture](https://example.com/x.png)

1. Reproduce it with \`npm test -- clock\`
2. Compare \`due\` by value

- [x] read the code
- [ ] write the test

> It fails about once in forty runs.

| case | before | after |
|---|---|---|
| same ms | lost | kept |

\`\`\`ts
const due = wakes.filter((wake) => wake.due <= now) // all of them
\`\`\`
`

export const code = `// Waits until all have landed.
export async function settle(flights: readonly Flight[]): Promise<number> {
  let landed = 0
  for (const { done, key } of flights) {
    if (await done) landed += 1
    else console.log(\`lost \${key}\`)
  }
  return landed
}`

export const before = 'one\ntwo\nthree\nfour\nfive\n'
export const after = 'one\n2\nthree\nfour\nfive\nsix\n'
export const json = {
  path: 'news.html',
  overwrite: true,
  retries: 3,
  nothing: null,
  tags: ['a', 'b\u200B', { deep: { deeper: [1, 2, 3] } }],
  text: 'first line\nsecond line with \u001B[2J an escape',
}

const graph = {
  name: 'report',
  nodes: [
    { name: 'plan', type: 'run' },
    { name: 'search', type: 'map' },
    { name: 'draft', type: 'agent', agent: 'writer' },
    { name: 'review', type: 'agent', agent: 'reviewer' },
    { name: 'publish', type: 'run', approval: 'ask' },
  ],
  edges: [
    { type: 'edge', from: 'START', to: 'plan' },
    { type: 'edge', from: 'plan', to: 'search' },
    { type: 'edge', from: 'search', to: 'draft' },
    { type: 'edge', from: 'draft', to: 'review' },
    { type: 'route', from: 'review', to: ['draft', 'publish'] },
    { type: 'edge', from: 'publish', to: 'END' },
  ],
}
export const drawing = drawingIn(graph) as GraphDrawing
export const standings: ReadonlyMap<string, NodeStanding> = new Map([
  ['plan', { status: 'ok', times: 1, now: false }],
  ['search', { status: 'ok', times: 3, now: false }],
  ['draft', { status: 'ok', times: 2, now: false }],
  ['review', { status: 'ok', times: 2, now: false }],
  ['publish', { status: 'waits', times: 1, now: true }],
])

export const times = Array.from({ length: 96 }, (_, i) => NOW - (96 - i) * 900_000)
export const values = times.map((_, i) => 1 + Math.sin(i / 9) * 0.6 + (i % 7) * 0.05)

/** What the shell asks for, as a server would answer. */
export const answers = [
  [['me'], { name: 'ana', role: 'admin', roles: [], reach: 'all', now: NOW, store: 's' }],
  [['pending'], { pending: [pending, pending, pending], now: NOW }],
] as const
