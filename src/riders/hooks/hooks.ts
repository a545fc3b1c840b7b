// The hooks of a harness: a host's own code around a run. They are asked here, in order. The caller records
// their answer (in a run's start, a call's result, a turn's verdict), so a hook that has answered is not asked again.
import { Fault } from '../../kernel/failure.ts'
import type { BlobRef, CallKey, Json, Metadata } from '../../kernel/content.ts'
import type { Waiting } from '../../kernel/next.ts'
import type { Clock } from '../../ports/system.ts'
import { callable, filled, listOf, needed, optionsOf, text } from '../../options.ts'
import { isMetadata, NO_METADATA, type Output } from '../../tools/core/output.ts'
import type { ToolAbout } from '../../tools/core/tool.ts'
import type { CallsOf, ToolList } from '../../tools/core/typed.ts'
import type { AnyCall } from '../../view/pending.ts'
import { usdOf } from '../../view/usd.ts'
import type { Result } from '../../sessions/result.ts'
import { asksWhenWoken, type Bound, bindingsOf } from './bound.ts'

type At = {
  readonly session: string
  readonly agent: string
  /** What the host said of the run and its session. */
  readonly metadata: Metadata
}
/** `about`: what kind of tool it is, the server it is of, and the `metadata` of its definition. */
type On = At & { readonly call: CallKey; readonly about: ToolAbout }
type OnCall<Of extends AnyCall> = Of extends unknown ? On & Of : never
/** The model must correct this call: nothing ran, and its arguments are as it wrote them. */
type Refused = On & AnyCall & { readonly refused: true }
type Ran = { readonly refused?: undefined }
/** A copy of the result. Change it in place, or return another. */
type Envelope = { ok: boolean; content: string; metadata: { [key: string]: Json } }

/** What each hook is told. Every hook gets a copy of its own. Calls are told apart by `tool`, where the tools are known as types. */
export type HookEvents<Tools extends ToolList[number] = ToolList[number]> = {
  readonly run_start: At & { readonly prompt: string }
  readonly user_prompt_submit: At & { readonly prompt: string }
  /** Before each turn's request is recorded. A request that is repeated, also after a crash, has the word that was said for it. */
  readonly before_request: At & {
    /** The turn of the run that this request begins, from 1, and how many there may be. */
    readonly turn: number
    readonly requestsMax: number
    /** Of this run so far, without its children. */
    readonly usage: {
      readonly requests: number
      readonly toolCalls: number
      readonly tokens: number
      readonly costUsd: number
    }
    /** How long the conversation is that the request will show, in messages and in characters. */
    readonly messages: number
    readonly chars: number
    readonly model: string
    /** What `route` may be: the models of a chain. Empty for a model that is not a chain. */
    readonly routes: readonly string[]
    /** The tools of the run. */
    readonly tools: readonly string[]
  }
  /**
   * Also asked of calls whose arguments do not fit, before that counts against them: then `raw` is what the model wrote, and `args`
   * what could be read of it. Such a call does not run, whatever is said.
   */
  readonly before_tool_call: OnCall<CallsOf<Tools>> & { readonly raw?: string }
  readonly after_tool_call: ((OnCall<CallsOf<Tools>> & Ran) | Refused) & { readonly output: Envelope }
  readonly before_subagent_run: On & AnyCall & { readonly child: string }
  readonly after_subagent_run: At & { readonly call: CallKey; readonly child: string; readonly output: Envelope }
  readonly limit_reached: At & { readonly limit: string; readonly value: number | null; readonly count: number }
  readonly run_end: At & { readonly result: Result }
  /** After each reply. `costUsd` is what the run has cost so far, and `cost` the same in millionths of a dollar. */
  readonly stop: At & {
    readonly requests: number
    readonly requestsMax: number
    readonly cost: number
    readonly costUsd: number
    readonly model: string
  }
  /** A reply without calls, which would be the answer. */
  readonly continue_turn: At & { readonly text: string; readonly requests: number; readonly requestsMax: number }
  /**
   * A reply that would be the answer, before it is written: `output` is the value, or the text where no schema is asked for, and `text`
   * the same as a text.
   */
  readonly before_answer: At & {
    readonly text: string
    readonly output: Json
    readonly requests: number
    readonly requestsMax: number
  }
  /** After the answer was given, in the background. */
  readonly post_run: At & {
    readonly prompt: string
    readonly result: Result
    /** One line a call: its tool and how it ended, and nothing of what it said. */
    readonly tools: readonly string[]
    readonly durationMs: number
  }
  /** The session was looked at, and there is nothing to do now; also when there was nothing before. */
  readonly session_rest: At & { readonly waiting: Waiting }
}

type Cancel = { readonly cancel: string }
type Nothing = undefined
/** What each hook may say. Those that may say nothing only watch. */
type Words = {
  readonly run_start: Nothing
  readonly user_prompt_submit: Cancel | { readonly context: string } | Nothing
  readonly before_request: RequestWord | Nothing
  readonly before_tool_call: Cancel | Nothing
  /** An envelope, or the JSON of one. */
  readonly after_tool_call: Output | string | Nothing
  readonly before_subagent_run: Cancel | Nothing
  readonly after_subagent_run: Nothing
  readonly limit_reached: Nothing
  readonly run_end: Nothing
  readonly stop: { readonly stop: string } | Nothing
  /** What the model is told instead of being done. The limit on requests still holds. */
  readonly continue_turn: { readonly continue: string } | Nothing
  /** The run ends without the answer; another answer takes its place; or the model is told what to correct, and asked again. */
  readonly before_answer: { readonly block: string } | { readonly replace: Json } | { readonly retry: string } | Nothing
  readonly post_run: Nothing
  readonly session_rest: Nothing
}

/** What the hooks make of an answer. */
type GuardedAnswer =
  | { readonly type: 'pass' }
  | { readonly type: 'replace'; readonly output: Json }
  | { readonly type: 'retry'; readonly text: string }
  | { readonly type: 'block'; readonly reason: string }

/** For one request alone. Nothing that was sent before changes. */
export type RequestWord = {
  /** The model of the chain that is asked first. */
  readonly route?: string
  /** Only these tools may be used. The model is told so; what it calls besides is refused. */
  readonly allow?: readonly string[]
  /** More for the model to read, from this request on. */
  readonly note?: string
}

export type HookType = keyof HookEvents
type HookOn<T extends HookType, Tools extends ToolList[number] = ToolList[number]> = {
  readonly type: T
  /** Only for these tools. Without it, for all. */
  readonly tools?: readonly string[]
  /** Only for these agents: those of the run, and for hooks about a subagent the subagent. Without it, for all. */
  readonly agents?: readonly string[]
  readonly run: (event: HookEvents<Tools>[T]) => Words[T] | void | Promise<Words[T] | void>
}
export type Hook<Tools extends ToolList[number] = ToolList[number]> = {
  readonly [T in HookType]: HookOn<T, Tools>
}[HookType]

export type HookOptions = {
  readonly hooks: readonly Hook[]
  /** A hook that throws ends its run. Otherwise it is reported, and the run goes on as if it had said nothing. */
  readonly strict: boolean
  readonly agents: readonly string[]
  readonly clock: Clock
  readonly report: (hook: HookType, error: unknown) => void
}

/** A strict hook threw. */
export class HookFailed extends Error {
  constructor(type: HookType, error: unknown) {
    super(
      `The hook ${type} failed: ${error instanceof Error ? error.message || error.name : String(error) || 'no reason'}`,
      { cause: error },
    )
    this.name = 'HookFailed'
  }
}

/** A hook that only watches a run must not delay the callers that wait for its answer. */
const WATCH_MS = 30_000

export class Hooks {
  readonly #hooks: readonly Hook[]
  readonly #strict: boolean
  readonly #clock: Clock
  readonly #report: HookOptions['report']
  /** Null: none of them works on sessions itself. */
  readonly bound: Bound | null

  constructor({ hooks, strict, agents, clock, report }: HookOptions) {
    for (const hook of hooks) check(hook, agents)
    const bindings = bindingsOf(hooks, (run): Hook => ({ type: 'post_run', run }))
    this.#hooks = bindings?.hooks ?? hooks
    this.bound = bindings?.bound ?? null
    this.#strict = strict
    this.#clock = clock
    this.#report = report
  }

  some(type: HookType): boolean {
    return this.#hooks.some((hook) => hook.type === type)
  }

  /** `agent` is the one that the hook's filter names: for hooks about a subagent that is the child. */
  has(type: HookType, agent: string, tool?: string): boolean {
    return this.#hooks.some((hook) => hook.type === type && applies(hook, agent, tool))
  }

  /**
   * Why it must not happen, or null. The first that says no is the last that is asked; whatever is said is a no.
   * No further hook is asked once it is not `wanted`: another worker may have the session by then.
   */
  async held(
    type: 'before_tool_call' | 'before_subagent_run',
    event: HookEvents[typeof type],
    wanted: () => boolean,
  ): Promise<string | null> {
    for (const hook of this.#of(type, filteredBy(event), event.tool)) {
      if (!wanted()) return null
      const word = await this.#ask(hook, structuredClone(event))
      if (word !== undefined) return reasonOf(word.cancel)
    }
    return null
  }

  /** `woken`: no message opens the run. Then only hooks are asked that want to be. */
  async prompt(
    event: HookEvents['user_prompt_submit'],
    woken: boolean,
  ): Promise<Cancel | { readonly contexts: readonly string[] }> {
    const contexts: string[] = []
    for (const hook of this.#of('user_prompt_submit', event.agent)) {
      if (woken && !asksWhenWoken(hook)) continue
      const word: { readonly cancel?: unknown; readonly context?: unknown } | undefined = await this.#ask(
        hook,
        structuredClone(event),
      )
      if (word === undefined) continue
      if (word.cancel !== undefined || typeof word.context !== 'string') return { cancel: reasonOf(word.cancel) }
      if (word.context !== '') contexts.push(word.context)
    }
    return { contexts }
  }

  /** What all hooks say of a request: the first route, the tools that all of them allow, and every note. */
  async beforeRequest(event: HookEvents['before_request']): Promise<RequestWord> {
    const words: RequestWord[] = []
    for (const hook of this.#of('before_request', event.agent)) {
      const said = await this.#ask(hook, structuredClone(event), { waited: true })
      if (said === undefined) continue
      const { word, wrong } = readWord(said, event)
      if (wrong !== null && this.#strict) throw new HookFailed(hook.type, new Error(wrong))
      if (wrong !== null) this.#report(hook.type, new Error(wrong))
      words.push(word)
    }
    const route = words.find((word) => word.route !== undefined)?.route
    const lists = words.flatMap(({ allow }) => (allow === undefined ? [] : [allow]))
    const allow = event.tools.filter((tool) => lists.every((list) => list.includes(tool)))
    const note = words.flatMap((word) => word.note ?? []).join('\n\n')
    const chosen = { ...(route === undefined ? {} : { route }), ...(lists.length === 0 ? {} : { allow }) }
    return note === '' ? chosen : { ...chosen, note }
  }

  /** The result as the hooks leave it. What they make of it must still be a result. */
  async rewritten(event: Omit<HookEvents['after_tool_call'], 'output'>, output: Output): Promise<Output> {
    let now = output
    for (const hook of this.#of('after_tool_call', event.agent, event.tool)) {
      const own = structuredClone({ ...event, output: now })
      const said = await this.#ask(hook, own)
      now = readEnvelope(said === undefined ? own.output : said, now.parts) ?? INVALID
    }
    return now
  }

  /** Why the run must stop, or null. */
  async stopped(event: HookEvents['stop']): Promise<string | null> {
    for (const hook of this.#of('stop', event.agent)) {
      const word = await this.#ask(hook, structuredClone(event))
      if (word !== undefined) return reasonOf(word.stop)
    }
    return null
  }

  /** What the model is told instead of being done, or null. */
  async goesOn(event: HookEvents['continue_turn']): Promise<string | null> {
    for (const hook of this.#of('continue_turn', event.agent)) {
      const word = await this.#ask(hook, structuredClone(event))
      if (typeof word?.continue === 'string' && word.continue.trim() !== '') return word.continue
    }
    return null
  }

  /**
   * Each hook sees what the one before left. The first that blocks the answer or wants another is the last that is asked. A hook that
   * throws is never passed over: an answer that could not be checked is none. `check` says whether a value fits the schema of the answer.
   * `answersFor`: other agents whose hooks are asked as well.
   */
  async guardAnswer(
    event: HookEvents['before_answer'],
    check: ((value: Json) => Promise<{ readonly output: Json } | { readonly problem: string }>) | null,
    answersFor: readonly string[],
  ): Promise<GuardedAnswer> {
    let now = event
    const hooks = [event.agent, ...answersFor].flatMap((agent) => this.#of('before_answer', agent))
    for (const hook of new Set(hooks)) {
      const said = await this.#ask(hook, structuredClone(now), { strict: true })
      if (said === undefined) continue
      const word = readAnswerWord(said)
      if (word.type !== 'replace') return word
      const checked = check === null ? readText(word.output) : await check(word.output)
      if ('problem' in checked)
        throw new HookFailed(hook.type, new Error(`What replaces the answer does not fit it.\n${checked.problem}`))
      const { output } = checked
      now = { ...now, output, text: typeof output === 'string' ? output : JSON.stringify(output) }
    }
    return now === event ? { type: 'pass' } : { type: 'replace', output: now.output }
  }

  /** Tells those that only watch. A run that has ended cannot be ended again: then no error is more than reported. */
  async tell<T extends 'run_start' | 'after_subagent_run' | 'limit_reached' | 'run_end' | 'post_run' | 'session_rest'>(
    type: T,
    event: HookEvents[T],
  ): Promise<void> {
    const strict = this.#strict && type === 'run_start'
    // What comes after the answer is not waited for.
    const waited = type !== 'post_run'
    for (const hook of this.#of(type, filteredBy(event)))
      await this.#ask(hook, structuredClone(event), { strict, waited })
  }

  #of<T extends HookType>(type: T, agent: string, tool?: string): readonly HookOn<T>[] {
    const known = (hook: Hook): boolean => hook.type === type && applies(hook, agent, tool)
    return this.#hooks.filter(known) as unknown as readonly HookOn<T>[]
  }

  /** The event is the hook's own from here on. */
  async #ask<T extends HookType>(
    hook: HookOn<T>,
    event: HookEvents[T],
    { strict = this.#strict, waited = false } = {},
  ): Promise<Words[T] | undefined> {
    try {
      const said = hook.run(event)
      const word = await (waited ? this.#within(said) : said)
      return word ?? undefined
    } catch (error) {
      if (strict) throw new HookFailed(hook.type, error)
      this.#report(hook.type, error)
      return undefined
    }
  }

  async #within<T>(said: T | Promise<T>): Promise<T> {
    let cancel = (): void => {}
    const late = new Promise<never>((_resolve, reject) => {
      cancel = this.#clock.timer(WATCH_MS, () => reject(new Error(`It did not return in ${WATCH_MS} ms.`)))
    })
    try {
      return await Promise.race([said, late])
    } finally {
      cancel()
    }
  }
}

const checkWord = optionsOf<RequestWord>('what before_request says', {
  route: filled,
  allow: listOf(filled),
  note: text,
})

/** As far as it can be meant. Tools that it may hold back are held back also where it says it badly. */
function readWord(
  said: unknown,
  { routes, tools }: HookEvents['before_request'],
): { readonly word: RequestWord; readonly wrong: string | null } {
  const { route, allow, note } = (typeof said === 'object' && said !== null ? said : {}) as Record<string, unknown>
  const listed: readonly unknown[] = Array.isArray(allow) ? allow : []
  const word = {
    ...(typeof note === 'string' && note.trim() !== '' ? { note } : {}),
    ...(typeof route === 'string' && routes.includes(route) ? { route } : {}),
    ...(allow === undefined ? {} : { allow: tools.filter((tool) => listed.includes(tool)) }),
  }
  return { word, wrong: wrongIn(said, { routes, tools }) }
}

function wrongIn(
  said: unknown,
  { routes, tools }: Pick<HookEvents['before_request'], 'routes' | 'tools'>,
): string | null {
  try {
    checkWord(said)
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
  const { route, allow = [] } = said as RequestWord
  const unknown = allow.find((tool) => !tools.includes(tool))
  if (unknown !== undefined) return `It allows the tool "${unknown}", which this run does not have.`
  if (route === undefined || routes.includes(route)) return null
  const known =
    routes.length === 0 ? 'The model is not a chain: make one with fallback(…).' : `There are: ${routes.join(', ')}.`
  return `It chose the route "${route}", which there is not. ${known}`
}

/** Whatever is no other word is a block, so a typing mistake lets no answer through. */
function readAnswerWord(said: unknown): Exclude<GuardedAnswer, { type: 'pass' }> {
  const word = (typeof said === 'object' && said !== null ? said : {}) as Readonly<Record<string, unknown>>
  const { block, replace, retry } = word
  if (block === undefined && typeof retry === 'string' && retry.trim() !== '') return { type: 'retry', text: retry }
  if (block !== undefined || replace === undefined) return { type: 'block', reason: reasonOf(block) }
  try {
    return { type: 'replace', output: JSON.parse(JSON.stringify(replace)) as Json }
  } catch {
    return { type: 'block', reason: 'What replaces the answer is not JSON.' }
  }
}

/** Without a schema the answer is a text. */
function readText(value: Json): { readonly output: Json } | { readonly problem: string } {
  return typeof value === 'string' ? { output: value } : { problem: '- <root>: expected a text' }
}

function reasonOf(said: unknown): string {
  return typeof said === 'string' && said.trim() !== '' ? said : 'No reason was given.'
}

const INVALID: Output = {
  ok: false,
  content: 'The call ran, but a hook turned its result into something that is not a result.',
  metadata: { error_type: 'InvalidToolOutput' },
}

function filteredBy(event: At & { readonly child?: string }): string {
  return event.child ?? event.agent
}

function applies({ tools, agents }: Hook, agent: string, tool: string | undefined): boolean {
  return (agents?.includes(agent) ?? true) && (tool === undefined || (tools?.includes(tool) ?? true))
}

/** Each hook, and whether it is about a call of one tool. */
const OF_TOOL: Readonly<Record<HookType, boolean>> = {
  run_start: false,
  user_prompt_submit: false,
  before_request: false,
  before_tool_call: true,
  after_tool_call: true,
  before_subagent_run: true,
  after_subagent_run: false,
  limit_reached: false,
  run_end: false,
  stop: false,
  continue_turn: false,
  before_answer: false,
  post_run: false,
  session_rest: false,
}

const checkHook = optionsOf<Hook>('a hook', {
  type: needed(text),
  tools: listOf(filled),
  agents: listOf(filled),
  run: needed(callable),
})

/** A hook that never fires is a policy that is not there, so what cannot be meant is refused. */
function check(hook: Hook, agents: readonly string[]): void {
  const { type } = hook ?? {}
  if (!Object.hasOwn(OF_TOOL, type))
    throw invalid(`There is no hook "${String(type)}". There are: ${Object.keys(OF_TOOL).join(', ')}.`)
  if (typeof hook.run !== 'function') throw invalid(`The hook ${type} has no function to run.`)
  checkHook(hook, `the hook ${type}`)
  for (const [name, list] of [['tools', hook.tools] as const, ['agents', hook.agents] as const]) {
    if (list?.length === 0) throw invalid(`The hook ${type} has an empty list of ${name}. Leave it out to mean all.`)
  }
  if (hook.tools && !OF_TOOL[type]) throw invalid(`The hook ${type} is not about a tool. Leave out its list of tools.`)
  const unknown = hook.agents?.find((name) => !agents.includes(name))
  if (unknown !== undefined)
    throw invalid(`The hook ${type} names the agent "${unknown}", which this harness does not have.`)
}

function invalid(text: string): Fault {
  return new Fault('invalid_config', text)
}

/**
 * An envelope, or the text of one, as plain JSON. Null if it is not one, or cannot be written as JSON. Pictures and files can be taken
 * out of it, and none put in.
 */
function readEnvelope(said: unknown, given: Output['parts']): Output | null {
  try {
    const value = JSON.parse(typeof said === 'string' ? said : JSON.stringify(said)) as Partial<Output> | null
    const { ok, content, metadata } = value ?? {}
    if (typeof ok !== 'boolean' || typeof content !== 'string' || !isMetadata(metadata)) return null
    const read = { ok, content, metadata: Object.keys(metadata).length === 0 ? NO_METADATA : metadata }
    if (given === undefined || !Array.isArray(value?.parts)) return read
    const told = value.parts as readonly (Partial<BlobRef> | null)[]
    const named = new Set(told.map((part) => part?.hash))
    const parts = given.filter((part) => part.type === 'blob' && named.has(part.hash))
    return parts.length > 0 ? { ...read, parts } : read
  } catch {
    return null
  }
}

/** A stop hook: the run ends before it costs this many dollars. A cap that is no amount of money stops at once. */
export function stopAtUsd(usd: number): Hook {
  const sound = Number.isFinite(usd) && usd > 0
  const run = ({ cost }: HookEvents['stop']): Words['stop'] => {
    if (!sound) return { stop: `The cap of ${usd} dollars is not an amount of money.` }
    return cost >= usd * 1_000_000 ? { stop: `The run has cost $${usdOf(cost)}, and may cost $${usd}.` } : undefined
  }
  return { type: 'stop', run }
}

/** A stop hook: the run ends after this many requests. */
export function stopAtRequests(most: number): Hook {
  const sound = Number.isInteger(most) && most > 0
  const run = ({ requests }: HookEvents['stop']): Words['stop'] => {
    if (!sound) return { stop: `${most} is not a number of requests.` }
    return requests >= most ? { stop: `The run has made ${requests} requests, and may make ${most}.` } : undefined
  }
  return { type: 'stop', run }
}
