// The verbs of sessions/verbs.ts with types for the answers of agents and the calls of tools. Types only: every verb
// behaves the same, and code that takes any session also takes a typed one.
import type { Json } from '../kernel/content.ts'
import type { AnySchema, SchemaOutput, ToolList } from '../tools/core/tool-types.ts'
import type { SendOptions } from './command.ts'
import type { Input } from './input.ts'
import type { Result } from '../runtime/state/run-result.ts'
import type { ForkOptions, RunOptions, SessionChoice, StreamOptions } from './verb-options.ts'
import type { BeginOptions, OpenOptions, RunStream, Session, Sessions } from './verbs.ts'

/** The answer type of a run: that of its own schema, if it has one, else that of its agent. */
type RunAnswer<Schema, Output> = [Schema] extends [never] ? Output : SchemaOutput<Schema>

/** The names of tools that a run may choose. With subagents, or with tools of unknown names, any name. */
type ToolChoices<Tools extends ToolList[number]> = {
  readonly tools?: readonly (string extends Tools['name']
    ? string
    : 'subagent' extends Tools['name']
      ? string
      : Tools['name'])[]
}

/** `Answers` are the answer types of agents, by name, and `Tools` the tools that agents have. */
export interface TypedSessions<Answers extends Readonly<Record<string, unknown>>, Tools extends ToolList[number]>
  extends Omit<Sessions, 'open' | 'session' | 'run' | 'stream'> {
  /** A new session, on disk when this resolves. */
  open<Agent extends keyof Answers & string = 'default'>(
    options?: OpenOptions<Agent>,
  ): Promise<TypedSession<Answers[Agent], Tools>>
  /**
   * The session with this id. Nothing is read or written until a verb is used. Only the caller knows its agent: for a
   * session of another agent write `session<'reader'>(id)`.
   */
  session<Agent extends keyof Answers & string = 'default'>(
    id: string,
    options?: SessionChoice,
  ): TypedSession<Answers[Agent], Tools>
  /** Runs one input in a new session to its end. */
  run<Schema extends AnySchema = never, Agent extends keyof Answers & string = 'default'>(
    input: Input,
    options?: RunOptions<Schema> & BeginOptions<Agent> & ToolChoices<Tools>,
  ): Promise<Result<RunAnswer<Schema, Answers[Agent]>, Tools>>
  /** The same, as it happens. */
  stream<Schema extends AnySchema = never, Agent extends keyof Answers & string = 'default'>(
    input: Input,
    options?: StreamOptions<Schema> & BeginOptions<Agent> & ToolChoices<Tools>,
  ): RunStream<RunAnswer<Schema, Answers[Agent]>, Tools>
}

/** One session of an agent whose answers are `Output`. */
export interface TypedSession<Output, Tools extends ToolList[number]> extends Omit<Session, 'run' | 'stream' | 'fork'> {
  /**
   * Sends the input and drives until its run settles or waits for a person. Without an input it drives the last run
   * until it rests.
   */
  run<Schema extends AnySchema = never>(
    input?: Input,
    options?: SendOptions<Schema> & RunOptions<Schema> & ToolChoices<Tools>,
  ): Promise<Result<RunAnswer<Schema, Output>, Tools>>
  /** The same, as it happens. */
  stream<Schema extends AnySchema = never>(
    input?: Input,
    options?: StreamOptions<Schema> & SendOptions<Schema> & ToolChoices<Tools>,
  ): RunStream<RunAnswer<Schema, Output>, Tools>
  /**
   * A new session that continues from here, or from an earlier event of this one. The answers of another agent are not
   * known as types.
   */
  fork(options: ForkOptions & { readonly agent: string }): Promise<TypedSession<Json, Tools>>
  fork(options?: ForkOptions): Promise<TypedSession<Output, Tools>>
}
