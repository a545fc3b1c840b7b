// Planted faults: small mutations of the real source, applied one at a time to a copy. The simulator must catch every one
// of them, and the unchanged copy must pass the same seeds. A mutation that no longer applies is an error, not a pass.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

export type Planted = { readonly name: string; readonly file: string; readonly find: string; readonly replace: string }

const SEEDS = 600

export const FAULTS: readonly Planted[] = [
  {
    name: 'no write-ahead: effects start before their intent is on disk',
    file: 'src/engine/drive.ts',
    find: 'await store.commit(plan.writes)',
    replace: 'store.commit(plan.writes).catch(() => {})',
  },
  {
    name: 'no fencing: a worker that lost its lease may write',
    file: 'src/stores/plan/plan.ts',
    find: 'if (epoch !== draft.epoch || draft.worker === null) {',
    replace: 'if (epoch === -1) {',
  },
  {
    name: 'a lost once call is run again',
    file: 'src/kernel/next.ts',
    find: "if (proposal.effect === 'once') {",
    replace: "if (proposal.effect === 'once' && key.endsWith('.9')) {",
  },
  {
    name: 'off by one: one model request too many',
    file: 'src/kernel/limits.ts',
    find: 'run.requests >= limits.modelRequests',
    replace: 'run.requests > limits.modelRequests',
  },
  {
    name: 'off by one: one tool call too many',
    file: 'src/kernel/fold.ts',
    find: 'calls > run.limits.toolCalls',
    replace: 'calls > run.limits.toolCalls + 1',
  },
  {
    name: 'each wrong call of a reply uses up a retry',
    file: 'src/kernel/retries.ts',
    find: 'if (turn.retried?.includes(tool)) return',
    replace: 'if (turn.retried?.includes(`${tool} `)) return',
  },
  {
    name: 'another process shows its own instructions',
    file: 'src/effects/epoch.ts',
    find: '(cache.session.cut ?? 0) > epoch.seq',
    replace: '(cache.session.cut ?? 0) < epoch.seq',
  },
  {
    name: 'a run goes back to what the run before it chose for itself',
    file: 'src/effects/epoch.ts',
    find: 'last.since === undefined ? last :',
    replace: "last.since === undefined || last.options !== undefined ? { ...last, model: 'simulated' } :",
  },
  {
    name: 'a denial is taken for a yes',
    file: 'src/kernel/ledger.ts',
    find: 'if (!e.allow) {\n    run.said',
    replace: 'if (e.allow) {\n    run.said',
  },
  {
    name: 'an approval is not bound to the action shown',
    file: 'src/kernel/ledger.ts',
    find: 'if (digest !== e.digest) return',
    replace: 'if (digest === null) return',
  },
  {
    name: 'the last decision stands instead of the first',
    file: 'src/kernel/ledger.ts',
    find: "if (call?.state.type !== 'asked' || call.proposal.gate?.type !== 'ask') return",
    replace:
      "if (!call || call.state.type === 'running' || call.proposal.gate?.type !== 'ask') return\n  if (call.state.type !== 'asked') return move(turn, i, e.allow ? READY : { type: 'denied', by: e.by, why: '' })",
  },
  {
    name: 'a no does not end a yes for the run',
    file: 'src/kernel/ledger.ts',
    find: 'run.said = { yes: [], denied: [...said.denied,',
    replace: 'run.said = { yes: said.yes, denied: [...said.denied,',
  },
  {
    name: 'a no to a child is not told to its parent',
    file: 'src/riders/children/children.ts',
    find: '...(end.denied ? { denied: true } : {}),',
    replace: '',
  },
  {
    name: 'a decision counts under a yes that was never for the run',
    file: 'src/kernel/ledger.ts',
    find: '!coverersOf(call, said).some((yes) => yes.call === e.under)) return',
    replace: 'said.yes.length > 99) return',
  },
  {
    name: 'an approval counts after it expired',
    file: 'src/kernel/ledger.ts',
    find: 'clockOf(e) > gate.expiresAt',
    replace: 'clockOf(e) > gate.expiresAt + 100_000',
  },
  {
    name: 'a call starts beside a sibling that is asked about again',
    file: 'src/engine/commit.ts',
    find: ' && !waitsForSibling(s, landing)',
    replace: '',
  },
  {
    name: 'a model is asked after its call was stopped',
    file: 'src/effects/call-model.ts',
    find: 'if (!flight.clear() || cache',
    replace: 'if (cache',
  },
  {
    name: 'siblings of an open question run',
    file: 'src/kernel/next.ts',
    find: 'if (asked.length === 0 && !s.paused) {',
    replace: 'if (!s.paused) {',
  },
  {
    name: 'an interrupt forgets the input that waits',
    file: 'src/kernel/result.ts',
    find: 'i.seq < s.stop || (i.seq < opened',
    replace: '(i.seq < opened',
  },
  {
    name: 'results are shown in the order they landed',
    file: 'src/kernel/next.ts',
    find: 'for (const seq of run.turn?.results ?? []) shows.push(seq)',
    replace: 'for (const seq of [...(run.turn?.results ?? [])].sort((a, b) => a - b)) shows.push(seq)',
  },
  {
    name: 'input that arrives during a request is taken for shown',
    file: 'src/kernel/fold.ts',
    find: 's.inputs = s.inputs.filter((input) => !e.shows.includes(input.seq))',
    replace: 's.inputs = []',
  },
  {
    name: 'what landed is dropped on a conflict',
    file: 'src/engine/drive.ts',
    find: 'await cache.open()\n',
    replace: 'await cache.open()\n        flights.written(plan.landed)\n',
  },
  {
    name: 'the same message twice is two messages',
    file: 'src/stores/plan/plan.ts',
    find: 'if (!known) return 0',
    replace: 'if (!known || known.seq > 0) return 0',
  },
  {
    name: 'an inbox event does not make its session due',
    file: 'src/stores/plan/plan.ts',
    find: 'draft.due = Math.min(draft.due ?? now, now)',
    replace: 'draft.due ??= null',
  },
  {
    name: 'a lost model call costs nothing',
    file: 'src/riders/money/charges.ts',
    find: "event.class !== 'lost'",
    replace: "event.class !== 'superseded'",
  },
  {
    name: 'completed while steering waits',
    file: 'src/kernel/next.ts',
    find: "verdict?.type === 'final' && inputs.length === 0",
    replace: "verdict?.type === 'final'",
  },
  {
    name: 'a child is not made in the commit that hands its call over',
    file: 'src/engine/commit.ts',
    find: 'writes: [write, ...births]',
    replace: 'writes: [write]',
  },
  {
    name: 'the id of a child does not follow from its call',
    file: 'src/riders/children/children.ts',
    find: 'const born = childId(id, call.key)',
    replace: 'const born = childId(id, `${call.key}-${at}`)',
  },
  {
    name: 'a child may be one deeper',
    file: 'src/effects/admit-reply.ts',
    find: 'if (depth + 1 > most) {',
    replace: 'if (depth > most) {',
  },
  {
    name: 'the answer of a child is lost',
    file: 'src/engine/commit.ts',
    find: 'if (sends.length > 0 && write.events.length > 0) write.sends',
    replace: 'if (sends.length > 1 && write.events.length > 0) write.sends',
  },
  {
    name: 'a child answers the call that asked it first, not the one that waits',
    file: 'src/kernel/fold.ts',
    find: 'if (s.parent && e.parent !== undefined)',
    replace: "if (s.parent && e.parent === '')",
  },
  {
    name: 'a child that was answered too late owes its parent nothing',
    file: 'src/riders/children/children.ts',
    find: 'cache.session.parent ? indebted',
    replace: 'plan.at < 0 ? indebted',
  },
  {
    name: 'two calls answer one question of a child',
    file: 'src/effects/admit-reply.ts',
    find: 'if (answered.has(session))',
    replace: 'if (answered.has(session) && calls.length > 100)',
  },
  {
    name: 'a child is not told that nobody waits for it any more',
    file: 'src/riders/children/children.ts',
    find: "if (call?.state.type === 'outside') dismissed(",
    replace: "if (call?.state.type === 'running') dismissed(",
  },
  {
    name: 'a call that a hook holds back runs',
    file: 'src/effects/run-call.ts',
    find: 'if (tool !== null) return { events: [heldBack(key, tool, false)] }',
    replace: "if (tool === '') return { events: [heldBack(key, tool, false)] }",
  },
  {
    name: 'what a hook said is not written down, and it is asked again',
    file: 'src/effects/run-call.ts',
    find: 'return dropped || flight.reason !== null ? { events: [] } : { events: [intentOf(call)] }',
    replace: 'return { events: [] }',
  },
  {
    name: 'an attempt that is over goes on asking hooks',
    file: 'src/riders/hooks/hooks.ts',
    find: 'if (!wanted()) return null',
    replace: "if (event.session === '') return null",
  },
  {
    name: 'nobody asks the hooks of a call',
    file: 'src/effects/admit-reply.ts',
    find: '? { ...placed, clear: true } : placed',
    replace: '? placed : placed',
  },
  {
    name: 'a strict hook that fails ends nothing',
    file: 'src/kernel/limits.ts',
    find: 'if (run.ends !== null) return',
    replace: "if (run.ends === '') return",
  },
  {
    name: 'a result that its hook never saw is shown',
    file: 'src/effects/run-call.ts',
    find: 'return resultOf(call, { ...done, output: WITHHELD }, [], { redactor, context })',
    replace: 'return resultOf(call, done, context.kept, { redactor, context })',
  },
  {
    name: 'what a hook lets go starts although the session is paused',
    file: 'src/engine/commit.ts',
    find: 'ready && s.run !== null && !s.paused &&',
    replace: 'ready && s.run !== null &&',
  },
  {
    name: 'a pause does not hold what has not begun',
    file: 'src/kernel/next.ts',
    find: "if (s.paused) return rest('resume')\n  const wakes",
    replace: 'const wakes',
  },
  {
    name: 'a pause ends with its run, though more waits',
    file: 'src/kernel/fold.ts',
    find: 's.paused &&= s.inputs.length > 0',
    replace: 's.paused = false',
  },
  {
    name: 'a prompt that a hook held back is shown later',
    file: 'src/kernel/fold.ts',
    find: '...(held ? [] : swallowed)',
    replace: '...swallowed',
  },
  {
    name: 'a budget counts what is spent, and not what is held',
    file: 'src/stores/plan/charges.ts',
    find: 'account.held + account.spent + amount > account.limit',
    replace: 'account.spent + amount > account.limit',
  },
  {
    name: 'children are paid from no account of their tree',
    file: 'src/riders/money/spending-limits.ts',
    find: '[accounts.session] : Object.values(accounts)',
    replace:
      "[accounts.session] : Object.values(accounts).filter((id) => !id.startsWith('tree:') || !payer.session.includes('~'))",
  },
  {
    name: 'a notice is told before every request',
    file: 'src/riders/guard/guard.ts',
    find: 'this.#progress?.asked()',
    replace: 'this.#told = []\n        this.#progress?.asked()',
  },
  {
    name: 'the breaker forgets what failed before its worker was lost',
    file: 'src/engine/session-cache.ts',
    find: 'this.#guard?.take(event)\n        this.keep(event)',
    replace: "if (event.type !== 'agent.tool_result') this.#guard?.take(event)\n        this.keep(event)",
  },
  {
    name: 'a reply that was superseded is taken when it arrives late',
    file: 'src/engine/commit.ts',
    find: 'stop === null ? landing : stoppedReply(landing, stop)',
    replace: 'stop !== null || landing ? landing : stoppedReply(landing, stop)',
  },
  {
    name: 'a reply that arrives after its stop costs nothing',
    file: 'src/riders/money/charges.ts',
    find: 'failed && !event.assumed && event.cost === undefined ? null : event',
    replace: 'failed && !event.assumed ? null : event',
  },
  {
    name: 'an outage settles the run as failed',
    file: 'src/effects/model-failure.ts',
    find: 'if (often || cut || leftMs <= 0',
    replace: 'if (often || cut || tries >= 4 || leftMs <= 0',
  },
  {
    name: 'a wake is lost in an outage',
    file: 'src/kernel/fold.ts',
    find: 'countFailure(run, e, at)',
    replace: 'countFailure(run, e, at)\n  s.wakes = []',
  },
  {
    name: 'a run that cannot begin settles as failed',
    file: 'src/effects/prepare.ts',
    find: 'if (usedMs < patienceMs) {',
    replace: 'if (usedMs < patienceMs && tries < 2) {',
  },
  {
    name: 'a wake is lost when its run cannot begin',
    file: 'src/kernel/retries.ts',
    find: "assert(s.run === null, 'a run was deferred inside a run')",
    replace: 's.wakes = []',
  },
  {
    name: 'a run that cannot begin is tried in a hot loop',
    file: 'src/effects/prepare.ts',
    find: 'const retryAt = cache.now() + wait',
    replace: 'const retryAt = cache.now() + wait * 0',
  },
  {
    name: 'what was shown of a cut answer is dropped',
    file: 'src/effects/contexts.ts',
    find: 'const shown = keeps ?',
    replace: "const shown = keeps && this.#session === '' ?",
  },
  {
    name: 'a cut answer is no counted attempt',
    file: 'src/kernel/retries.ts',
    find: 'if (e.partial !== undefined) run.cuts += 1',
    replace: 'run.cuts += 0',
  },
  {
    name: 'one request too many after the last token',
    file: 'src/riders/guard/guard.ts',
    find: 'this.#tokens >= tokens)',
    replace: 'this.#tokens >= tokens * 2)',
  },
  {
    name: 'an imported approval counts',
    file: 'src/kernel/session.ts',
    find: 's.run.foreign = true',
    replace: 's.run.foreign = false',
  },
  {
    name: 'an imported session goes on by itself',
    file: 'src/kernel/next.ts',
    find: "if (s.held) return rest('resume')",
    replace: "if (s.held && s.seq < 0) return rest('resume')",
  },
  {
    name: 'what is open in a fork goes on as it was decided in the other session',
    file: 'src/sessions/fork.ts',
    find: '...more, foreign: true }',
    replace: '...more }',
  },
  {
    name: 'a review lets through what the policy allows',
    file: 'src/effects/review.ts',
    find: "=== 'never' ? 'never' : 'always'",
    replace: "=== 'never' ? 'never' : 'auto'",
  },
  {
    name: 'what ran once elsewhere is asked about, and run again',
    file: 'src/effects/review.ts',
    find: "if (state.type !== 'running') return false",
    replace: "if (state.type !== 'asked') return false",
  },
  {
    name: 'an approval is bound to no place',
    file: 'src/tools/core/admit.ts',
    find: 'if (place === undefined && environment === null) return undefined',
    replace: 'if (place !== undefined || environment === null) return undefined',
  },
  {
    name: 'a decision before the review counts',
    file: 'src/kernel/ledger.ts',
    find: "terms.gate?.type === 'ask' ? { type: 'asked', votes: [], since: seq } : READY",
    replace: "terms.gate?.type === 'ask' && before.type === 'asked' ? { type: 'asked', votes: [], since: seq } : READY",
  },
  {
    name: 'a lease is believed that lies years ahead',
    file: 'src/stores/plan/plan.ts',
    find: 'return until > now && !isAhead(until - ttlMs, now)',
    replace: 'return until > now && ttlMs > 0',
  },
  {
    name: 'a due time is believed that a clock wrote which was ahead',
    file: 'src/stores/memory/memory.ts',
    find: 'if (!isAhead(this.#latest, now)) return',
    replace: 'if (now > 0) return',
  },
  {
    name: 'a wake is believed that a clock asked for which was ahead',
    file: 'src/kernel/clock.ts',
    find: 'return askedAt > now + AHEAD_MS_MAX',
    replace: 'return askedAt < 0 * now',
  },
  {
    name: "deadlines go by the machine's clock",
    file: 'src/engine/commit.ts',
    find: 'const here = { now: at + cache.aheadMs, epoch }',
    replace: 'const here = { now: job.store.now(), epoch }',
  },
  {
    name: 'active time is counted by the order of the log instead of the clock',
    file: 'src/kernel/clock.ts',
    find: 'return wall ?? at',
    replace: 'return wall === 0 ? wall : at',
  },
]

/** True when the clean copy passes and every planted fault whose name holds `only` is caught. */
export async function planted(only = ''): Promise<boolean> {
  const faults = FAULTS.filter(({ name }) => name.includes(only))
  if (faults.length === 0) throw new Error(`No planted fault has "${only}" in its name.`)
  const root = resolve('.build', 'planted')
  let good = true
  const clean = run(root, null)
  console.log(`${clean.caught ? 'FAILED ' : 'passes '}  the clean tree, ${SEEDS} seeds`)
  if (clean.caught) console.log(clean.output)
  good &&= !clean.caught
  for (const fault of faults) {
    const { caught, by } = run(root, fault)
    console.log(`${caught ? 'caught ' : 'MISSED '}  ${fault.name}${caught ? `  (${by})` : ''}`)
    good &&= caught
  }
  console.log(`${faults.length} planted faults, ${good ? 'all caught' : 'NOT all caught'}`)
  rmSync(root, { recursive: true, force: true })
  return good
}

type Outcome = { readonly caught: boolean; readonly by: string; readonly output: string }

function run(root: string, fault: Planted | null): Outcome {
  rmSync(root, { recursive: true, force: true })
  mkdirSync(root, { recursive: true })
  for (const part of ['src', 'sim']) cpSync(part, join(root, part), { recursive: true })
  cpSync('package.json', join(root, 'package.json'))
  symlinkSync(resolve('node_modules'), join(root, 'node_modules'))
  writeFileSync(join(root, 'tsconfig.json'), config())
  if (fault) apply(root, fault)
  // A mutation may not type-check; it must only run.
  spawnSync(process.execPath, [resolve('node_modules', 'typescript', 'bin', 'tsc'), '-p', root], { stdio: 'ignore' })
  const main = join(root, 'out', 'sim', 'main.js')
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, '--bail', '--seeds', `${SEEDS}`], {
    encoding: 'utf8',
    timeout: 900_000,
  })
  const output = `${stdout}${stderr}`
  // Seeds that were not all run have shown nothing.
  if (status === null)
    return { caught: fault === null, by: 'took too long', output: `${output}The seeds took too long.` }
  const by = /\b([A-Z]\d+) /.exec(/seed \d+: (.*)/.exec(output)?.[1] ?? '')?.[1] ?? `exit ${status}`
  return { caught: status !== 0, by, output }
}

/** The source still holds what this fault changes, exactly once. */
export function applies({ file, find }: Planted, root = '.'): boolean {
  return readFileSync(join(root, file), 'utf8').split(find).length === 2
}

function apply(root: string, fault: Planted): void {
  const { file, find, replace, name } = fault
  if (!applies(fault, root)) {
    throw new Error(`Planted fault "${name}" does not apply: ${file} must hold this exactly once: ${find}`)
  }
  const path = join(root, file)
  writeFileSync(
    path,
    readFileSync(path, 'utf8').replace(find, () => replace),
  )
}

/** The repository's own settings, for the copy. */
function config(): string {
  const options = { outDir: 'out', rootDir: '.', noEmitOnError: false, noCheck: true }
  return JSON.stringify({ extends: resolve('tsconfig.json'), compilerOptions: options, include: ['src', 'sim'] })
}
