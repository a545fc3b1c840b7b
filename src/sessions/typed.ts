// The verbs where types are known: those of sessions/verbs.ts, with the answers of agents and the calls of tools as types. Types only.
// Every verb does what it does there, and whatever takes a session of any kind takes one of these.
import type { Json } from '../kernel/content.ts'
import type { AnySchema, MadeBy, ToolList } from '../tools/core/typed.ts'
import type { SendOptions } from './command.ts'
import type { Input } from './input.ts'
import type { Result } from './result.ts'
import type { ForkOptions, RunOptions, SessionChoice, StreamOptions } from './verb-options.ts'
import type { BeginOptions, OpenOptions, RunStream, Session, Sessions } from './verbs.ts'

/** The answer of a run: what its own schema makes, if it has one, else that of its agent. */
type Chosen<Schema, Output> = [Schema] extends [never] ? Output : MadeBy<Schema>

/** The tools that a run may name. With subagents, and with tools whose names are not known, any. */
type ToolChoices<Tools extends ToolList[number]> = {
  readonly tools?: readonly (string extends Tools['name']
    ? string
    : 'subagent' extends Tools['name']
      ? string
      : Tools['name'])[]
}

/** `Answers` are the answers of agents, by name, and `Tools` the tools that agents have. */
export interface TypedSessions<Answers extends Readonly<Record<string, unknown>>, Tools extends ToolList[number]>
  extends Omit<Sessions, 'open' | 'session' | 'run' | 'stream'> {
  /** A new session, on disk when this resolves. */
  open<Agent extends keyof Answers & string = 'default'>(
    options?: OpenOptions<Agent>,
  ): Promise<TypedSession<Answers[Agent], Tools>>
  /**
   * The session with this id. Nothing is read or written until a verb is used. Whose it is, only the caller knows: for one of another
   * agent say `session<'reader'>(id)`.
   */
  session<Agent extends keyof Answers & string = 'default'>(
    id: string,
    options?: SessionChoice,
  ): TypedSession<Answers[Agent], Tools>
  /** One input in a new session, to its end. */
  run<Schema extends AnySchema = never, Agent extends keyof Answers & string = 'default'>(
    input: Input,
    options?: RunOptions<Schema> & BeginOptions<Agent> & ToolChoices<Tools>,
  ): Promise<Result<Chosen<Schema, Answers[Agent]>, Tools>>
  /** The same, as it happens. */
  stream<Schema extends AnySchema = never, Agent extends keyof Answers & string = 'default'>(
    input: Input,
    options?: StreamOptions<Schema> & BeginOptions<Agent> & ToolChoices<Tools>,
  ): RunStream<Chosen<Schema, Answers[Agent]>, Tools>
}

/** One session of an agent whose answers are `Output`. */
export interface TypedSession<Output, Tools extends ToolList[number]> extends Omit<Session, 'run' | 'stream' | 'fork'> {
  /** Sends and drives until that run settles or waits for a person. With nothing to send: the last run, driven to rest. */
  run<Schema extends AnySchema = never>(
    input?: Input,
    options?: SendOptions<Schema> & RunOptions<Schema> & ToolChoices<Tools>,
  ): Promise<Result<Chosen<Schema, Output>, Tools>>
  /** The same, as it happens. */
  stream<Schema extends AnySchema = never>(
    input?: Input,
    options?: StreamOptions<Schema> & SendOptions<Schema> & ToolChoices<Tools>,
  ): RunStream<Chosen<Schema, Output>, Tools>
  /** A new session that goes on from here, or from an earlier event of this one. The answers of another agent are not known here. */
  fork(options: ForkOptions & { readonly agent: string }): Promise<TypedSession<Json, Tools>>
  fork(options?: ForkOptions): Promise<TypedSession<Output, Tools>>
}
