// The tools and models of a what-if: each tool answers from the recording, runs, or is replaced, as the caller chose,
// and so does the model. What the recording does not have is an error result, and counted.
import type { CallKey, EffectClass, Json } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { CallContext, Model, ModelFailure, Reply, Request } from '../ports/model.ts'
import type { CompleteStore } from '../ports/store.ts'
import type { RecordedModel } from '../runtime/state/recorded-model.ts'
import { sleep } from '../runtime/state/sleep.ts'
import { repeatResult, STOPPED_MS } from '../archive/replay-run.ts'
import { findReferredBlobs } from '../view/readable-blobs.ts'
import { ToolFailure } from '../tools/core/tool-output.ts'
import type { Tool, ToolContext, ToolSource } from '../tools/core/tool.ts'
import type { RecordedPeople } from './recorded-people.ts'
import type { RecordedReplies } from './recorded-replies.ts'
import type { RecordedResults } from './recorded-results.ts'
import type { RecordedTree } from './recorded-tree.ts'

/** Replaces a tool: it gets the arguments of a call, and returns or throws what the tool would. */
export type ToolStub = (args: never, context: ToolContext) => unknown

/**
 * How the calls of a tool are answered. `recorded`: with the result that the recording has for the same arguments.
 * `live`: the tool runs. `recorded_or_live`: it runs where the recording has none.
 */
export type ToolMode = 'recorded' | 'live' | 'recorded_or_live'

/** Something that the what-if asked for and the recording does not have. Without a tool it was a reply of the model. */
export type MissingAnswer = {
  /** The session that asked. */
  readonly session: string
  /** The call without a recorded result. Absent for a request to a model. */
  readonly call?: CallKey
  /** The tool of that call. */
  readonly tool?: string
  /** The arguments of that call. */
  readonly args?: Json
}

export type PlaybackParts = {
  readonly tree: RecordedTree
  readonly results: RecordedResults
  readonly replies: RecordedReplies
  readonly people: RecordedPeople
  readonly store: CompleteStore
  readonly modes: ReadonlyMap<string, ToolMode | ToolStub>
  readonly effects: boolean
  /** Called at the first missing answer of a strict what-if. */
  readonly stop: (() => void) | null
  /** The agent of a session. */
  readonly agentOf: (session: string) => Promise<string>
}

export class Playback {
  readonly missing: MissingAnswer[] = []
  /** What the repeated replies had cost in the recording, in millionths of a dollar. */
  repeatedCost = 0
  /** How far the root's log was read, and how many replies it has so far. */
  #read = 0
  #replies = 0
  readonly #parts: PlaybackParts
  readonly #tools = new WeakMap<Tool, Tool>()
  readonly #models = new WeakMap<Model, Model>()

  constructor(parts: PlaybackParts) {
    this.#parts = parts
  }

  /** The tool as the what-if has it. Nothing runs that the caller did not choose. */
  standIn(tool: Tool): Tool {
    const known = this.#tools.get(tool)
    if (known) return known
    const mode = this.#parts.modes.get(tool.name) ?? 'recorded'
    const { rooted, filtered } = tool
    const made: Tool = {
      ...tool,
      ...(tool.outside ? {} : this.#handlers(tool, mode)),
      ...(rooted ? { rooted: (root) => this.#orNull(rooted(root)) } : {}),
      ...(filtered ? { filtered: (skills) => this.#orNull(filtered(skills)) } : {}),
    }
    this.#tools.set(tool, made)
    return made
  }

  #orNull(tool: Tool | null): Tool | null {
    return tool && this.standIn(tool)
  }

  #handlers(tool: Tool, mode: ToolMode | ToolStub): Partial<Tool> {
    if (mode === 'live') return { execute: (args, context) => this.#runLive(tool, args, context) }
    const execute = async (args: unknown, context: ToolContext): Promise<unknown> => {
      await this.tellPeople(context.session, 'tool')
      if (typeof mode === 'function') return mode(args as never, context)
      const recorded = await this.takeResult(context.session, context.call, tool.name, args as Json)
      if (recorded !== null) return this.#repeat(recorded.result, context)
      if (mode === 'recorded_or_live') return this.#runLive(tool, args, context)
      throw this.#miss({ session: context.session, call: context.call, tool: tool.name, args: args as Json })
    }
    // A recorded result was checked when it was made, and may be shortened.
    const unchecked = mode === 'recorded' ? { checkOutput: null, secrets: [] } : {}
    const { reconcile } = tool
    return {
      execute,
      attempts: 1,
      ...unchecked,
      undo: null,
      ...(tool.filesChanged ? { filesChanged: async (json) => this.#filesOf(tool, json) } : {}),
      ...(reconcile && mode !== 'recorded_or_live' ? { reconcile: execute } : {}),
    }
  }

  /** An approval is for the files as they were, and since then the call may have changed them. */
  async #filesOf({ name, filesChanged }: Tool, args: Json) {
    return this.#parts.results.filesOf(name, args) ?? (await filesChanged?.(args)) ?? []
  }

  async #runLive(tool: Tool, args: unknown, context: ToolContext): Promise<unknown> {
    await this.tellPeople(context.session, 'tool')
    // A tool of a source is known only now.
    checkEffect(tool.name, tool.effect, this.#parts.effects)
    return tool.execute(args, context)
  }

  async takeResult(session: string, call: CallKey, tool: string, args: Json) {
    const agent = await this.#parts.agentOf(session)
    return this.#parts.results.take({ session, agent, call, tool, args })
  }

  /** Texts and files that the result names are kept again, where its session may read them. */
  async #repeat(result: Extract<Event, { type: 'agent.tool_result' }>, context: ToolContext): Promise<unknown> {
    const { blobs } = this.#parts.tree
    const find = async (hash: string) => blobs.get(hash) ?? null
    for (const { data, media } of (await findReferredBlobs([result], find)).values()) context.keep(data, media)
    return repeatResult(result, { blob: find }, context)
  }

  /** Counts an answer that the recording does not have. Returns the failure that the model reads. */
  #miss(missing: MissingAnswer): ToolFailure {
    this.note(missing)
    return new ToolFailure('NotFound', NO_RESULT, { error_type: 'NotRecorded' })
  }

  note(missing: MissingAnswer): void {
    this.missing.push(missing)
    this.#parts.stop?.()
  }

  /** Sends the messages that people had sent by this place. Only the root's: a child is told by its parent. */
  async tellPeople(session: string, place: 'tool' | 'request'): Promise<void> {
    const { people, store, tree } = this.#parts
    if (session !== tree.root || !people.hasMessages) return
    const { events } = await store.read(session, this.#read)
    this.#read += events.length
    for (const { type } of events) if (type === 'agent.message') this.#replies += 1
    for (const body of people.takeUpTo(2 * this.#replies + (place === 'request' ? 1 : 0)))
      await store.commit([{ session, lane: 'inbox', events: [body] }])
  }

  /** The chosen model, told what people said at its place. */
  paced(model: Model): Model {
    const call: Model['call'] = async (request, context) => {
      await this.tellPeople(request.session, 'request')
      return model.call(request, context)
    }
    return this.#like(model, call)
  }

  /** A model that repeats the recording under the name of this one. */
  recorded({ name }: Model): RecordedModel {
    return {
      name,
      standInFor: (tool) => tool,
      repeatsResults: ![...this.#parts.modes.values()].some((mode) => mode !== 'recorded'),
      call: (request, context) => this.#answer(request, context),
    }
  }

  async #answer(request: Request, context: CallContext): Promise<Reply | ModelFailure> {
    const { session, seq } = request
    const { store, replies, people, tree } = this.#parts
    const [asked] = (await store.read(session, seq - 1, 1)).events
    const answer = asked?.type === 'model.started' ? await replies.take(store, session, seq) : null
    await this.tellPeople(session, 'request')
    if (answer === null) {
      this.note({ session })
      return { type: 'failure', class: 'bad_request', message: NO_REPLY, retryable: false }
    }
    if (answer.said !== 'stopped') {
      if (answer.said.type === 'reply') this.repeatedCost += answer.said.cost ?? 0
      return answer.said
    }
    if (people.stop && session === tree.root) await store.commit([{ session, lane: 'inbox', events: [people.stop] }])
    await sleep(context.clock, STOPPED_MS, context.signal)
    return { type: 'failure', class: 'bad_request', message: NO_REPLY, retryable: false }
  }

  /** The model itself with another `call`. Its other parts may be private to it. */
  #like(model: Model, call: Model['call']): Model {
    const known = this.#models.get(model)
    if (known) return known
    const made = new Proxy(model, {
      get(target, name) {
        if (name === 'call') return call
        const value: unknown = Reflect.get(target, name, target)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
    this.#models.set(model, made)
    return made
  }
}

const NO_RESULT = 'The recording has no result for this call, so nothing ran.'
const NO_REPLY =
  'The recording has no reply to this request: something in it is different. Choose a model to answer it.'

/** Only what reads may run without `effects`. */
export function checkEffect(tool: string, effect: EffectClass, effects: boolean): void {
  if (effect === 'read' || effects) return
  throw new Fault(
    'invalid_input',
    `The tool "${tool}" is of the class ${effect}: to run it again would do its work again. Leave it recorded, give a function for it, or allow effects (effects: true, --effects).`,
  )
}

export function isSource(tool: Tool | ToolSource): tool is ToolSource {
  return 'type' in tool
}
