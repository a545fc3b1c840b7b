// A council as a graph: members answer the same question at once, and a chair combines the answers. The members are
// agents that only read. The count above the text of the result comes from this code, not from a model.
import { Fault } from '../../kernel/failure.ts'
import type { Model } from '../../ports/model.ts'
import { anyCheck, nonEmptyCheck, requiredCheck, optionsChecker, textCheck, waitCheck } from '../../options.ts'
import { modelCheck, type SubagentOptions } from '../../sessions/agent.ts'
import { last, type StateOf } from '../../graphs/channel.ts'
import type { Graph } from '../../graphs/graph-definition.ts'
import { withState } from '../../graphs/with-state.ts'
import type { Mapped } from '../../graphs/node.ts'
import { END, START } from '../../graphs/planner-node.ts'
import { truncateText, isBlank, quoteMarkdown, childFailureReason } from '../prompt-block.ts'
import { READS_ONLY } from '../safety-tiers.ts'
import {
  CHAIR_INSTRUCTIONS,
  councilChairTask,
  answeredCountText,
  MEMBER_INSTRUCTIONS,
  councilMemberTask,
  type CouncilSeat,
} from './council-prompts.ts'

/** Options of a council: the models in its seats, and the one that joins their answers. */
export type CouncilOptions = {
  /** Its name as an agent. Default `council`. */
  readonly name?: string
  /** When to use it: models that may start subagents read this. */
  readonly description?: string
  /** One to five models. The same model twice is two seats. */
  readonly seats: readonly (string | Model)[]
  /** The model that combines the answers. It has no seat. */
  readonly chair: string | Model
  /** The model for the chair's second try. Default: the chair's. */
  readonly fallback?: string | Model
  /** Given to the members beside their own instructions. */
  readonly instructions?: string
  /** How long one member may work. Default 5 minutes. */
  readonly timeoutMs?: number
}

const LABELS = ['A', 'B', 'C', 'D', 'E'] as const
const TIMEOUT_MS = 300_000
const QUESTION_CHARS_MAX = 50_000
/** The state is in every reply, and the chair reads all answers at once. */
const ANSWER_CHARS_MAX = 20_000
const DESCRIPTION =
  'Asks several models the same question at once, and puts their answers together: where they agree, where not, what only one saw. For decisions that are hard to undo. The task is the question, complete in itself.'

const CHANNELS = {
  question: last(''),
  seats: last<readonly CouncilSeat[]>([]),
  /** Whether a chair combined the answers. */
  together: last(false),
  /** The reason of each failure of the chair. */
  chair: last<readonly string[]>([]),
  /** The result for people: the number of answers, then the text. */
  text: last(''),
}
/** The state of a council: its question, the answers of the seats, and the conclusion. */
export type CouncilState = StateOf<typeof CHANNELS>

const { agentsNode, graph } = withState(CHANNELS)

/** Give the harness the `councilAgents` of the same options as its subagents. */
export function councilGraph(options: CouncilOptions): Graph {
  const { name, description, members, chairs } = planCouncil(options)
  const [chair, again] = chairs
  return graph({
    name,
    description,
    nodes: {
      members: agentsNode({
        description: 'answer the question, each for itself',
        agents: members,
        over: ({ question }) =>
          isValidQuestion(question) ? members.map((agent) => ({ agent, task: councilMemberTask(question) })) : [],
        take: (results, { question }) => {
          if (!isValidQuestion(question)) throw namedError('EmptyQuestion', questionProblem(question))
          return { seats: fillSeats(members, results), together: false, chair: [], text: '' }
        },
      }),
      chair: agentsNode({
        description: 'puts the answers together',
        agents: [chair],
        over: ({ question, seats }) => [{ agent: chair, task: councilChairTask(question, seats) }],
        take: concludeCouncil,
      }),
      chair_again: agentsNode({
        description: 'puts them together if the chair failed',
        agents: [again],
        over: ({ question, seats }) => [{ agent: again, task: councilChairTask(question, seats) }],
        take: concludeCouncil,
      }),
    },
    edges: [
      [START, 'members'],
      ['members', 'chair'],
      { from: 'chair', to: ['chair_again', END], by: ({ together }) => (together ? END : 'chair_again') },
      ['chair_again', END],
    ],
    input: (said) => ({ question: said }),
  })
}

/** The agents of a council, for `subagents` of a harness. Members only read; the chair has no tools. */
export function councilAgents(options: CouncilOptions): Readonly<Record<string, SubagentOptions>> {
  const { members, chairs, seats, chair, fallback, instructions, timeoutMs } = planCouncil(options)
  const limits = { modelMs: timeoutMs, activeMs: timeoutMs, outageMs: timeoutMs }
  const told = instructions === '' ? MEMBER_INSTRUCTIONS : `${MEMBER_INSTRUCTIONS}\n\n${instructions}`
  const member = { ...READS_ONLY, description: 'a member of a council', instructions: told, limits }
  const alone = {
    tools: [],
    toolAccess: { allow: [] },
    description: 'the chair of a council',
    instructions: CHAIR_INSTRUCTIONS,
    limits,
  }
  return Object.fromEntries<SubagentOptions>([
    ...members.map((agent, i) => [agent, { ...member, model: seats[i] ?? chair }] as const),
    [chairs[0], { ...alone, model: chair }],
    [chairs[1], { ...alone, model: fallback }],
  ])
}

type CouncilPlan = Required<CouncilOptions> & {
  /** The agents of the seats, in their order. */
  readonly members: readonly string[]
  readonly chairs: readonly [string, string]
}

const checkOptions = optionsChecker<CouncilOptions>('a council', {
  name: nonEmptyCheck,
  description: textCheck,
  seats: requiredCheck(anyCheck),
  chair: requiredCheck(anyCheck),
  fallback: modelCheck,
  instructions: textCheck,
  timeoutMs: waitCheck,
})

function planCouncil(options: CouncilOptions): CouncilPlan {
  const { seats, chair } = (options ?? {}) as Partial<CouncilOptions>
  if (!Array.isArray(seats) || seats.length === 0)
    throw councilFault('NoSeats', `a council needs one to ${LABELS.length} models as its seats`)
  if (seats.length > LABELS.length)
    throw councilFault('TooManySeats', `a council has at most ${LABELS.length} seats, and this one has ${seats.length}`)
  for (const [i, seat] of seats.entries())
    if (modelCheck(seat, 'seats', '') !== null || seat === '')
      throw councilFault('InvalidSeat', `seats[${i}] is no model. Name one, such as openai:gpt-5.1`)
  if (chair === undefined || chair === null || chair === '' || modelCheck(chair, 'chair', '') !== null)
    throw councilFault('NoChair', 'a council needs a model as its chair')
  checkOptions(options)
  const { name = 'council', description = DESCRIPTION, fallback = chair, instructions = '' } = options
  for (const [who, model] of Object.entries({ chair, fallback })) {
    const at = seats.indexOf(model)
    if (at >= 0)
      throw councilFault(
        'ChairIsMember',
        `the ${who} is also seats[${at}]. It would judge its own answer: name another model`,
      )
  }
  const members = seats.map((_, i) => `${name}_seat_${(LABELS[i] ?? '').toLowerCase()}`)
  const chairs = [`${name}_chair`, `${name}_chair_again`] as const
  const { timeoutMs = TIMEOUT_MS } = options
  return { name, description, seats, chair, fallback, instructions, timeoutMs, members, chairs }
}

function isValidQuestion(question: unknown): question is string {
  return typeof question === 'string' && !isBlank(question) && question.length <= QUESTION_CHARS_MAX
}

function questionProblem(question: unknown): string {
  if (typeof question !== 'string' || isBlank(question))
    return 'there is no question. Begin again with the question as text, or as {"question": "…"}.'
  return `the question has ${question.length} characters, and may have ${QUESTION_CHARS_MAX}.`
}

/** Throws if no seat has an answer. A retry then asks all of them again. */
function fillSeats(members: readonly string[], results: readonly Mapped<string>[]): readonly CouncilSeat[] {
  const seats = members.map((agent, i): CouncilSeat => {
    const result = results.find(({ index }) => index === i)
    const seat = { label: LABELS[i] ?? '', agent }
    if (result?.ok && result.value.trim() !== '')
      return { ...seat, answer: truncateText(result.value, ANSWER_CHARS_MAX) }
    return { ...seat, empty: result && !result.ok ? childFailureReason(result.error) : 'it said nothing' }
  })
  if (seats.some(({ answer }) => answer !== undefined)) return seats
  throw namedError('AllSeatsFailed', `no seat answered.\n${emptySeatLines(seats).join('\n')}`)
}

function concludeCouncil([result]: readonly Mapped<string>[], { seats, chair }: CouncilState): Partial<CouncilState> {
  const said = result?.ok ? result.value.trim() : ''
  const heading = `# Council: ${answeredCountText(seats)}`
  const empty = emptySeatLines(seats)
  const gaps = empty.length === 0 ? [] : [empty.join('\n')]
  if (said !== '') return { together: true, text: [heading, ...gaps, said].join('\n\n') }
  const failed = [...chair, result && !result.ok ? childFailureReason(result.error) : 'it said nothing']
  const reasons = [...new Set(failed)].join('; ')
  const marked = `**Not put together**: the chair failed (${reasons}). These are the answers as they are.`
  const answers = seats.flatMap(({ label, answer }) =>
    answer === undefined ? [] : [`## Seat ${label}\n\n${quoteMarkdown(answer)}`],
  )
  return { together: false, chair: failed, text: [heading, ...gaps, marked, ...answers].join('\n\n') }
}

function emptySeatLines(seats: readonly CouncilSeat[]): readonly string[] {
  return seats.flatMap(({ label, empty }) => (empty === undefined ? [] : [`- Seat ${label} is empty: ${empty}`]))
}

/** An error of a run, with this name. */
function namedError(name: string, message: string): Error {
  return Object.assign(new Error(message), { name })
}

function councilFault(name: string, why: string): Fault {
  return new Fault('invalid_config', `${name}: ${why}.`)
}
