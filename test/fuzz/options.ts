// Wrong options for every public entry: a misspelled one is refused by its name, an unusable value is refused or taken, and
// nothing ever throws a raw error. What each option means is tested elsewhere.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { startChaos } from '../../src/testing/index.ts'
import { reportGraph } from '../../src/cli/demo/report/report-graph.ts'
import { withState, last } from '../../src/graphs/index.ts'
import * as terret from '../../src/index.ts'
import { openMemory, recallHook, runtimeFilesHook } from '../../src/memory/index.ts'
import { fromAiSdk } from '../../src/models/aisdk/aisdk.ts'
import { recordingOf } from '../../src/replay.ts'
import * as tools from '../../src/tools/index.ts'
import { localTraces, otlp, spansOf, tracing } from '../../src/tracing/index.ts'
import { drawn, type Tape } from './tape.ts'
import { hold, type Property, type Target } from './target.ts'

type Options = Readonly<Record<string, unknown>>
type Entry = {
  /** Options that are right. */
  readonly good: Options
  /** All that there are. Those in `good` are among them. */
  readonly more: string
  /** Sound: what is passed is what a program without types may pass. */
  readonly call: (options: never, world: World) => unknown
}
type World = { readonly folder: string; readonly harness: terret.Harness; readonly store: terret.Store }

const model = terret.scripted([])
const nothing = (): string => ''
const AGENT = 'tools instructions limits plan output toolAccess results context'
const GUARD = 'read write protect fileBytesMax ripgrep contentCharsMax'
const SANDBOX = { workspace: '.', sandbox: { type: 'none', reason: 'a test' } }
const { node, question, agentNode, mapNode, graph } = withState({ n: last(0) })
const step = node({ run: () => ({ n: 1 }) })
const sdk = { specificationVersion: 'v3', provider: 'p', modelId: 'm' } as unknown as Parameters<typeof fromAiSdk>[0]
const session = ({ harness }: World): Promise<terret.SessionHandle> => harness.open()

const ENTRIES: Readonly<Record<string, Entry>> = {
  'new Harness': {
    good: { model },
    more: `${AGENT} store approvals secrets budget subagents graphs hooks models deps breaker onError worker system`,
    call: (options) => new terret.Harness(options),
  },
  budget: {
    good: {},
    more: 'runUsd sessionUsd treeUsd dayUsd',
    call: (budget) => new terret.Harness({ model, budget }),
  },
  limits: {
    good: {},
    more: 'modelRequests modelAttempts modelMs activeMs toolCalls tokens depth parallel',
    call: (limits) => new terret.Harness({ model, limits }),
  },
  toolAccess: {
    good: {},
    more: 'profile allow alsoAllow deny',
    call: (toolAccess) => new terret.Harness({ model, toolAccess }),
  },
  results: {
    good: {},
    more: 'compression summarize bytes unknownTool toolErrors',
    call: (results) => new terret.Harness({ model, results }),
  },
  context: { good: {}, more: 'prefix compaction', call: (context) => new terret.Harness({ model, context }) },
  approvals: {
    good: {},
    more: 'policy environment timeoutMs',
    call: (approvals) => new terret.Harness({ model, approvals }),
  },
  models: { good: {}, more: 'named routes', call: (models) => new terret.Harness({ model, models }) },
  system: { good: {}, more: 'clock random', call: (system) => new terret.Harness({ model, system }) },
  worker: {
    good: {},
    more: 'leaseMs graceMs lingerMs width drives watchdogMs',
    call: (worker) => new terret.Harness({ model, worker }),
  },
  breaker: { good: {}, more: 'identical rejected failures', call: (breaker) => new terret.Harness({ model, breaker }) },
  hook: {
    good: { type: 'run_end', run: nothing },
    more: 'tools agents strict',
    call: (hook) => new terret.Harness({ model, hooks: [hook] }),
  },
  subagent: {
    good: { description: 'd' },
    more: `model inheritSources ${AGENT}`,
    call: (child) => new terret.Harness({ model, subagents: { child } }),
  },
  policy: {
    good: { rules: [] },
    more: 'onAsk actionsPerHour asksPerHour base',
    call: (policy) => new terret.Harness({ model, approvals: { policy } }),
  },
  rule: {
    good: { effect: 'ask' },
    more: 'tool args exact path command environment class n roles expiresMs reason',
    call: (rule) => terret.parsePolicy({ rules: [rule] }),
  },
  defineTool: {
    good: { name: 't', description: 'd', input: { type: 'object' }, execute: nothing },
    more: 'output effect sequential timeoutMs approval retries attempts instructions normalise aliases readsKept deliverable polling injected onInterrupt secrets undo reconcile isolate',
    call: (options) => terret.defineTool(options),
  },
  output: { good: { content: 'c' }, more: 'ok metadata follows', call: (options) => terret.output(options) },
  model: {
    good: {},
    more: 'outputTokensMax temperature topP seed stop toolChoice parallelToolCalls serviceTier reasoning chain cache body baseUrl key headers fetch deadlines prices env endpoints',
    call: (options) => terret.model('openai:gpt-5.1', options),
  },
  cacheReplies: {
    good: { namespace: 'n' },
    more: 'ttlMs maxEntries store',
    call: (options) => terret.cacheReplies('openai:gpt-5.1', options),
  },
  countTokens: {
    good: {},
    more: 'instructions tools messages output',
    call: (input) => terret.countTokens(terret.offline(), input),
  },
  endpoint: {
    good: {
      name: 'own',
      protocol: 'chat',
      baseUrl: 'http://own',
      keys: [],
      keyHeader: 'authorization',
      quirks: {},
      headers: {},
    },
    more: '',
    call: (endpoint) => terret.model('own:x', { endpoints: [endpoint] }),
  },
  scripted: {
    good: { text: 't' },
    more: 'reasoning calls deltas delayMs finish',
    call: (step_) => terret.scripted([step_]),
  },
  route: { good: { chat: model }, more: 'reasoning coding', call: (routes) => terret.route(routes, 'chat') },
  sqlite: { good: {}, more: 'clock', call: (options, { folder }) => void terret.sqlite(join(folder, 'x.db'), options) },
  memory: { good: {}, more: 'clock sessionsMax', call: (options) => void terret.memory(options) },
  open: {
    good: {},
    more: 'agent environment attachments id reuse folder',
    call: (options, { harness }) => harness.open(options),
  },
  run: {
    good: {},
    more: 'raw agent',
    call: (options, { harness }) => harness.stream('go', options).result.then(nothing),
  },
  list: {
    good: {},
    more: 'status root folder cursor order limit',
    call: (options, { harness }) => harness.list(options),
  },
  work: { good: { idleMs: 0 }, more: 'width signal', call: (options, { harness }) => harness.work(options) },
  remove: {
    good: {},
    more: 'by',
    call: async (options, world) => world.harness.remove((await session(world)).id, options),
  },
  send: { good: {}, more: 'when id by', call: async (options, world) => (await session(world)).send('hi', options) },
  steer: { good: { type: 'pause' }, more: '', call: async (command, world) => (await session(world)).send([command]) },
  decide: {
    good: { callId: '1.0', allow: true, by: 'ana' },
    more: 'sessionId why role digest remember usd',
    call: async (options, world) => (await session(world)).decide(options).catch(stale),
  },
  answer: {
    good: { callId: '1.0', content: 'c' },
    more: 'sessionId ok by',
    call: async (options, world) => (await session(world)).answer(options).catch(stale),
  },
  fork: { good: {}, more: 'at id folder', call: async (options, world) => (await session(world)).fork(options) },
  fileTools: { good: { root: '.' }, more: GUARD, call: (options) => tools.fileTools(options) },
  builtInTools: {
    good: { root: '.' },
    more: `${GUARD} names skills fetch`,
    call: (options) => tools.builtInTools(options),
  },
  jsonlSearchTool: { good: { root: '.' }, more: GUARD, call: (options) => tools.jsonlSearchTool(options) },
  bashTool: {
    good: SANDBOX,
    more: 'attended protectedPaths masked env risk onLine',
    call: (options) => tools.bashTool(options),
  },
  webFetchTool: {
    good: {},
    more: 'hosts approval ports privateHosts ca resolve',
    call: (options) => tools.webFetchTool(options),
  },
  parallelLlmTool: {
    good: { root: '.', model },
    more: 'promptsMax attemptsMax output',
    call: (options) => tools.parallelLlmTool(options),
  },
  skillTools: { good: { ...SANDBOX, folders: [] }, more: 'selected', call: (options) => tools.skillTools(options) },
  mcpServer: {
    good: { name: 's', command: 'c' },
    more: 'args env cwd tools required connectMs callMs effects trustAnnotations approval instructions',
    call: (options) => void tools.mcpServer(options),
  },
  'mcpServer by address': {
    good: { name: 's', url: 'http://s' },
    more: 'headers transport required',
    call: (options) => void tools.mcpServer(options),
  },
  tracing: { good: { sinks: [] }, more: 'queueMax onDrop', call: (options) => tracing(options) },
  otlp: { good: {}, more: 'endpoint headers capture timeoutMs service env', call: (options) => void otlp(options) },
  localTraces: { good: {}, more: 'dir name capture keep env', call: (options) => void localTraces(options) },
  spansOf: { good: {}, more: 'capture', call: (options) => spansOf([], options) },
  graph: {
    good: {
      name: 'g',
      nodes: { step },
      edges: [
        ['START', 'step'],
        ['step', 'END'],
      ],
    },
    more: 'description limits visitsMax input',
    call: (options) => graph(options),
  },
  node: {
    good: { run: nothing },
    more: 'description to retries effect timeoutMs secrets sequential approval reads',
    call: (options) => node(options),
  },
  question: {
    good: { reads: nothing, take: nothing },
    more: 'description to approval',
    call: (options) => question(options),
  },
  agentNode: {
    good: { agent: 'a', task: nothing, take: nothing },
    more: 'description retries',
    call: (options) => agentNode(options),
  },
  mapNode: {
    good: { over: () => [], run: nothing, take: nothing },
    more: 'policy effect timeoutMs',
    call: (options) => mapNode(options),
  },
  reportGraph: { good: { root: '.' }, more: 'anywhere', call: (options) => reportGraph(options) },
  openMemory: {
    good: { file: 'm.db', store: terret.memory() },
    more: 'sessions clock report',
    call: (options) => void openMemory(options),
  },
  recallHook: {
    good: {},
    more: 'limit minScore charsMax timeoutMs file budgetChars onError',
    call: (options) => recallHook({ recall: async () => [] }, options),
  },
  runtimeFilesHook: {
    good: { store: terret.memory(), dir: '.' },
    more: '',
    call: (options) => runtimeFilesHook(options),
  },
  recordingOf: { good: {}, more: 'tools children results', call: (options) => recordingOf([], options) },
  fromAiSdk: {
    good: {},
    more: 'outputTokensMax temperature providerOptions prices',
    call: (options) => fromAiSdk(sdk, options),
  },
  // The options for listening are left out: some odd values would be valid there.
  startChaos: { good: { script: ['hi'], strict: false }, more: '', call: (options) => startChaos(options) },
  'a chaos reply': {
    good: { text: 't' },
    more: 'finish deltas chaos',
    call: (reply) => startChaos({ script: [reply] }),
  },
}

/** Nothing waits in these sessions. */
function stale(error: unknown): void {
  const known = error instanceof terret.Fault && ['decision_stale', 'call_unknown'].includes(error.code)
  if (!known) throw error
}

const ODD: readonly unknown[] = [
  '',
  '5s',
  'Once',
  Number.NaN,
  -1,
  0.5,
  Number.POSITIVE_INFINITY,
  2 ** 60,
  null,
  true,
  false,
  [],
  [null],
  [5],
  {},
  { a: 1 },
  nothing,
  1n,
  Symbol('s'),
  new Map(),
  new Date(0),
  new Error('e'),
  Object.create(null) as unknown,
]
const WHOLE: readonly unknown[] = [null, 5, 'text', true, [], nothing, 1n]

type Case = {
  readonly entry: string
  readonly options: unknown
  /** A name that no option has. */
  readonly unknown: string | null
}

function drawCase(tape: Tape): Case {
  const entry = tape.pick(Object.keys(ENTRIES))
  const { good, more } = ENTRIES[entry] as Entry
  const known = [...Object.keys(good), ...more.split(' ').filter((name) => name !== '')]
  const way = tape.below(8)
  if (way === 0) return { entry, options: tape.pick(WHOLE), unknown: null }
  const name = known.length === 0 ? 'option' : tape.pick(known)
  if (way <= 3 && known.length > 0) return { entry, options: { ...good, [name]: tape.pick(ODD) }, unknown: null }
  const wrong = misspelled(name, tape)
  if (known.includes(wrong)) return { entry, options: good, unknown: null }
  return { entry, options: { ...good, [wrong]: tape.pick([good[name], ...ODD]) }, unknown: wrong }
}

function misspelled(name: string, tape: Tape): string {
  const at = tape.below(name.length)
  const [before, char, after] = [name.slice(0, at), name[at] ?? '', name.slice(at + 1)]
  const swapped = `${before}${after.slice(0, 1)}${char}${after.slice(1)}`
  return tape.pick([
    `${name}z`,
    before + after,
    before + char + char + after,
    swapped,
    `${before}q${after}`,
    '__proto__ ',
    'x',
  ])
}

type Subject = (entry: Entry, options: unknown, world: World) => unknown

async function check(subject: Subject, { entry, options, unknown }: Case, world: World): Promise<void> {
  const one = ENTRIES[entry] as Entry
  let error: unknown = null
  try {
    const made = (await subject(one, options, world)) as { close?: () => Promise<void> } | undefined
    if (typeof made?.close === 'function') await made.close()
  } catch (thrown) {
    error = thrown
  }
  const fault = error instanceof terret.Fault ? error : null
  hold(error === null || fault !== null, () => `${entry} threw ${String(error)}`)
  if (unknown === null) return
  hold(fault !== null, () => `${entry} dropped the option "${unknown}"`)
  // One within another option is named by its whole path.
  const [alone, within] = [JSON.stringify(unknown), `.${JSON.stringify(unknown).slice(1)}`]
  const said = [alone, within].some((name) => fault?.message.includes(name))
  const named = fault?.code === 'invalid_config' && said
  hold(named, () => `${entry} did not name "${unknown}": ${fault?.code} ${fault?.message}`)
}

const real: Subject = ({ call }, options, world) => call(options as never, world)

function open(subject: Subject): Property {
  const folder = mkdtempSync(join(tmpdir(), 'terret-options-'))
  const store = terret.memory()
  const world = { folder, store, harness: new terret.Harness({ model: terret.scripted(nothing), store }) }
  return {
    property: fc.asyncProperty(drawn(drawCase, 16), (one) => check(subject, one, world)),
    close: () => rmSync(folder, { recursive: true, force: true }),
  }
}

export const optionObjects: Target = {
  name: 'options',
  open: () => open(real),
  planted: [
    {
      name: 'what is not known is left out',
      open: () =>
        open((entry, options, world) => {
          const names = new Set([...Object.keys(entry.good), ...entry.more.split(' ')])
          const kept = options !== null && typeof options === 'object' && !Array.isArray(options)
          const known = kept ? Object.fromEntries(Object.entries(options).filter(([name]) => names.has(name))) : options
          return real(entry, known, world)
        }),
    },
    {
      name: 'a field of what is null is read',
      open: () =>
        open((entry, options, world) => real(entry, (options as { x?: unknown }).x === 0 ? {} : options, world)),
    },
  ],
}
