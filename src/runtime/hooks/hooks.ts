// The hooks of a harness: a host's own code around a run. They are asked here, in order. The caller records
// their answer (in a run's start, a call's result, a turn's verdict), so a hook that has answered is not asked again.
import { Fault } from '../../kernel/failure.ts'
import type { BlobRef, Json } from '../../kernel/content.ts'
import type { Clock } from '../../ports/system.ts'
import {
  flagCheck,
  functionCheck,
  nonEmptyCheck,
  listCheck,
  requiredCheck,
  optionsChecker,
  textCheck,
} from '../../options.ts'
import { isMetadata, NO_OUTPUT_METADATA, type Output } from '../../tools/core/tool-output.ts'
import { isLaneAgent } from '../../view/lanes.ts'
import { thrownText } from '../../view/shown-text.ts'
import { usdOf } from '../../view/usd.ts'
import { asksWhenWoken } from './woken-hooks.ts'
import type {
  RunHookEvent,
  HookEvents,
  HookCancel,
  HookAnswers,
  GuardedAnswer,
  RequestHookAnswer,
  HookType,
  HookOn,
  Hook,
  RunHooks,
} from '../state/hook-events.ts'

export type HookOptions = {
  readonly hooks: readonly Hook[]
  readonly agents: readonly string[]
  readonly clock: Clock
  readonly report: (hook: HookType, error: unknown) => void
}

/** A strict hook threw. */
export class HookFailed extends Error {
  constructor(type: HookType, error: unknown) {
    super(`The hook ${type} failed: ${thrownText(error)}`, { cause: error })
    this.name = 'HookFailed'
  }
}

/** A hook that only watches a run must not delay the callers that wait for its answer. */
const WATCH_MS = 30_000

export class Hooks implements RunHooks {
  readonly #hooks: readonly Hook[]
  readonly #clock: Clock
  readonly #report: HookOptions['report']

  constructor({ hooks, agents, clock, report }: HookOptions) {
    for (const hook of hooks) refuseInvalidHook(hook, agents)
    this.#hooks = hooks
    this.#clock = clock
    this.#report = report
  }

  some(type: HookType): boolean {
    return this.#hooks.some((hook) => hook.type === type)
  }

  /** `agent` is the agent that the hook's filter names: the child, for hooks about a subagent. */
  has(type: HookType, agent: string, tool?: string): boolean {
    return this.#hooks.some((hook) => hook.type === type && appliesTo(hook, agent, tool))
  }

  /**
   * Why the call must not happen, or null. The first refusal is final, and any answer is a refusal. No further hook is
   * asked once the call is not `wanted`: another worker may have the session by then.
   */
  async whyCancelled(
    type: 'before_tool_call' | 'before_subagent_run',
    event: HookEvents[typeof type],
    wanted: () => boolean,
  ): Promise<string | null> {
    for (const hook of this.#of(type, filterAgent(event), event.tool)) {
      if (!wanted()) return null
      const word = await this.#ask(hook, structuredClone(event))
      if (word !== undefined) return reasonText(word.cancel)
    }
    return null
  }

  /** `woken`: no message opens the run. Then only hooks are asked that ask for it. */
  async prompt(
    event: HookEvents['user_prompt_submit'],
    woken: boolean,
  ): Promise<HookCancel | { readonly contexts: readonly string[] }> {
    const contexts: string[] = []
    for (const hook of this.#of('user_prompt_submit', event.agent)) {
      if (woken && !asksWhenWoken(hook)) continue
      const word: { readonly cancel?: unknown; readonly context?: unknown } | undefined = await this.#ask(
        hook,
        structuredClone(event),
      )
      if (word === undefined) continue
      if (word.cancel !== undefined || typeof word.context !== 'string') return { cancel: reasonText(word.cancel) }
      if (word.context !== '') contexts.push(word.context)
    }
    return { contexts }
  }

  /**
   * The combined answer of all hooks for a request: the first route, the tools that all of them allow, and every note.
   */
  async beforeRequest(event: HookEvents['before_request']): Promise<RequestHookAnswer> {
    const words: RequestHookAnswer[] = []
    for (const hook of this.#of('before_request', event.agent)) {
      const said = await this.#ask(hook, structuredClone(event), { waited: true })
      if (said === undefined) continue
      const { word, wrong } = readRequestAnswer(said, event)
      if (wrong !== null && hook.strict) throw new HookFailed(hook.type, new Error(wrong))
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

  /** The result after all hooks changed it. It must still be a result. */
  async rewriteResult(event: Omit<HookEvents['after_tool_call'], 'output'>, output: Output): Promise<Output> {
    let now = output
    for (const hook of this.#of('after_tool_call', event.agent, event.tool)) {
      const own = structuredClone({ ...event, output: now })
      const said = await this.#ask(hook, own)
      now = readEnvelope(said === undefined ? own.output : said, now.parts) ?? INVALID_RESULT
    }
    return now
  }

  /** Why the run must stop, or null. */
  async whyStopped(event: HookEvents['stop']): Promise<string | null> {
    for (const hook of this.#of('stop', event.agent)) {
      const word = await this.#ask(hook, structuredClone(event))
      if (word !== undefined) return reasonText(word.stop)
    }
    return null
  }

  /** The text that sends the model on instead of ending, or null. */
  async continueText(event: HookEvents['continue_turn']): Promise<string | null> {
    for (const hook of this.#of('continue_turn', event.agent)) {
      const word = await this.#ask(hook, structuredClone(event))
      if (typeof word?.continue === 'string' && word.continue.trim() !== '') return word.continue
    }
    return null
  }

  /**
   * Each hook sees the answer as the one before left it. The first hook that blocks the answer or asks for another is
   * the last one asked. A hook that throws is never passed over: an answer that could not be checked is none. `refuseInvalidHook`
   * tells whether a value fits the schema of the answer. `answersFor`: other agents whose hooks are asked as well.
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
      const word = readGuardedAnswer(said)
      if (word.type !== 'replace') return word
      const checked = check === null ? checkTextAnswer(word.output) : await check(word.output)
      if ('problem' in checked)
        throw new HookFailed(hook.type, new Error(`What replaces the answer does not fit it.\n${checked.problem}`))
      const { output } = checked
      now = { ...now, output, text: typeof output === 'string' ? output : JSON.stringify(output) }
    }
    return now === event ? { type: 'pass' } : { type: 'replace', output: now.output }
  }

  /** Tells the hooks that only watch. A run that has ended cannot be ended again, so errors are only reported then. */
  async tell<T extends 'run_start' | 'after_subagent_run' | 'limit_reached' | 'run_end' | 'post_run' | 'session_rest'>(
    type: T,
    event: HookEvents[T],
  ): Promise<void> {
    // A hook after the answer has no time limit.
    const waited = type !== 'post_run'
    for (const hook of this.#of(type, filterAgent(event)))
      await this.#ask(hook, structuredClone(event), { strict: hook.strict === true && type === 'run_start', waited })
  }

  #of<T extends HookType>(type: T, agent: string, tool?: string): readonly HookOn<T>[] {
    const known = (hook: Hook): boolean => hook.type === type && appliesTo(hook, agent, tool)
    return this.#hooks.filter(known) as unknown as readonly HookOn<T>[]
  }

  /** The event belongs to the hook from here on. */
  async #ask<T extends HookType>(
    hook: HookOn<T>,
    event: HookEvents[T],
    { strict = hook.strict === true, waited = false } = {},
  ): Promise<HookAnswers[T] | undefined> {
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

const checkRequestAnswer = optionsChecker<RequestHookAnswer>('what before_request says', {
  route: nonEmptyCheck,
  allow: listCheck(nonEmptyCheck),
  note: textCheck,
})

/**
 * Reads as much of the answer as is valid. Tools that the hook may hold back are held back even if its list is partly
 * wrong.
 */
function readRequestAnswer(
  said: unknown,
  { routes, tools }: HookEvents['before_request'],
): { readonly word: RequestHookAnswer; readonly wrong: string | null } {
  const { route, allow, note } = (typeof said === 'object' && said !== null ? said : {}) as Record<string, unknown>
  const listed: readonly unknown[] = Array.isArray(allow) ? allow : []
  const word = {
    ...(typeof note === 'string' && note.trim() !== '' ? { note } : {}),
    ...(typeof route === 'string' && routes.includes(route) ? { route } : {}),
    ...(allow === undefined ? {} : { allow: tools.filter((tool) => listed.includes(tool)) }),
  }
  return { word, wrong: requestAnswerError(said, { routes, tools }) }
}

function requestAnswerError(
  said: unknown,
  { routes, tools }: Pick<HookEvents['before_request'], 'routes' | 'tools'>,
): string | null {
  try {
    checkRequestAnswer(said)
  } catch (error) {
    return thrownText(error)
  }
  const { route, allow = [] } = said as RequestHookAnswer
  const unknown = allow.find((tool) => !tools.includes(tool))
  if (unknown !== undefined) return `It allows the tool "${unknown}", which this run does not have.`
  if (route === undefined || routes.includes(route)) return null
  const known =
    routes.length === 0 ? 'The model is not a chain: make one with fallback(…).' : `There are: ${routes.join(', ')}.`
  return `It chose the route "${route}", which there is not. ${known}`
}

/** Any unknown answer is a block, so a typing mistake lets no answer through. */
function readGuardedAnswer(said: unknown): Exclude<GuardedAnswer, { type: 'pass' }> {
  const word = (typeof said === 'object' && said !== null ? said : {}) as Readonly<Record<string, unknown>>
  const { block, replace, retry } = word
  if (block === undefined && typeof retry === 'string' && retry.trim() !== '') return { type: 'retry', text: retry }
  if (block !== undefined || replace === undefined) return { type: 'block', reason: reasonText(block) }
  try {
    return { type: 'replace', output: JSON.parse(JSON.stringify(replace)) as Json }
  } catch {
    return { type: 'block', reason: 'What replaces the answer is not JSON.' }
  }
}

/** Without a schema the answer must be a text. */
function checkTextAnswer(value: Json): { readonly output: Json } | { readonly problem: string } {
  return typeof value === 'string' ? { output: value } : { problem: '- <root>: expected a text' }
}

function reasonText(said: unknown): string {
  return typeof said === 'string' && said.trim() !== '' ? said : 'No reason was given.'
}

const INVALID_RESULT: Output = {
  ok: false,
  content: 'The call ran, but a hook turned its result into something that is not a result.',
  metadata: { error_type: 'InvalidToolOutput' },
}

function filterAgent(event: RunHookEvent & { readonly child?: string }): string {
  return event.child ?? event.agent
}

/** A hook without a list of agents is about the agents of the host, and not about lanes. */
function appliesTo({ tools, agents }: Hook, agent: string, tool: string | undefined): boolean {
  return (agents?.includes(agent) ?? !isLaneAgent(agent)) && (tool === undefined || (tools?.includes(tool) ?? true))
}

/** For each hook: whether it is about a call of one tool. */
const IS_ABOUT_TOOL: Readonly<Record<HookType, boolean>> = {
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

const checkHook = optionsChecker<Hook>('a hook', {
  type: requiredCheck(textCheck),
  tools: listCheck(nonEmptyCheck),
  agents: listCheck(nonEmptyCheck),
  strict: flagCheck,
  run: requiredCheck(functionCheck),
})

/** A hook that never fires enforces nothing, so options with which it could never fire are refused. */
function refuseInvalidHook(hook: Hook, agents: readonly string[]): void {
  const { type } = hook ?? {}
  if (!Object.hasOwn(IS_ABOUT_TOOL, type))
    throw invalidConfig(`There is no hook "${String(type)}". There are: ${Object.keys(IS_ABOUT_TOOL).join(', ')}.`)
  if (typeof hook.run !== 'function') throw invalidConfig(`The hook ${type} has no function to run.`)
  checkHook(hook, `the hook ${type}`)
  for (const [name, list] of [['tools', hook.tools] as const, ['agents', hook.agents] as const]) {
    if (list?.length === 0)
      throw invalidConfig(`The hook ${type} has an empty list of ${name}. Leave it out to mean all.`)
  }
  if (hook.tools && !IS_ABOUT_TOOL[type])
    throw invalidConfig(`The hook ${type} is not about a tool. Leave out its list of tools.`)
  const unknown = hook.agents?.find((name) => !agents.includes(name))
  if (unknown !== undefined)
    throw invalidConfig(`The hook ${type} names the agent "${unknown}", which this harness does not have.`)
}

function invalidConfig(text: string): Fault {
  return new Fault('invalid_config', text)
}

/**
 * An envelope, or the text of one, as plain JSON. Null if it is not one, or cannot be written as JSON. Pictures and
 * files can be removed from it, but not added.
 */
function readEnvelope(said: unknown, given: Output['parts']): Output | null {
  try {
    const value = JSON.parse(typeof said === 'string' ? said : JSON.stringify(said)) as Partial<Output> | null
    const { ok, content, metadata } = value ?? {}
    if (typeof ok !== 'boolean' || typeof content !== 'string' || !isMetadata(metadata)) return null
    const read = { ok, content, metadata: Object.keys(metadata).length === 0 ? NO_OUTPUT_METADATA : metadata }
    if (given === undefined || !Array.isArray(value?.parts)) return read
    const told = value.parts as readonly (Partial<BlobRef> | null)[]
    const named = new Set(told.map((part) => part?.hash))
    const parts = given.filter((part) => part.type === 'blob' && named.has(part.hash))
    return parts.length > 0 ? { ...read, parts } : read
  } catch {
    return null
  }
}

/** A stop hook: the run ends before it costs this many dollars. An invalid amount stops the run at once. */
export function stopAtUsd(usd: number): Hook {
  const sound = Number.isFinite(usd) && usd > 0
  const run = ({ cost }: HookEvents['stop']): HookAnswers['stop'] => {
    if (!sound) return { stop: `The cap of ${usd} dollars is not an amount of money.` }
    return cost >= usd * 1_000_000 ? { stop: `The run has cost $${usdOf(cost)}, and may cost $${usd}.` } : undefined
  }
  return { type: 'stop', run }
}

/** A stop hook: the run ends after this many requests. */
export function stopAtRequests(most: number): Hook {
  const sound = Number.isInteger(most) && most > 0
  const run = ({ requests }: HookEvents['stop']): HookAnswers['stop'] => {
    if (!sound) return { stop: `${most} is not a number of requests.` }
    return requests >= most ? { stop: `The run has made ${requests} requests, and may make ${most}.` } : undefined
  }
  return { type: 'stop', run }
}
