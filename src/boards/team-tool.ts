// `team`: a model makes a team and leads it. The board and the members are those of `startTeam`; what the members report comes to the
// model as messages, and the team goes on by itself meanwhile.
import { Fault } from '../kernel/failure.ts'
import { callable, needed, optionsOf } from '../options.ts'
import { output, type Output, ToolFailure } from '../tools/core/output.ts'
import { choice, type Infer, list, object, optional, text } from '../tools/core/schema.ts'
import { defineTool, type Tool } from '../tools/core/tool.ts'
import { rootIdOf } from '../view/ids.ts'
import { boardText } from './board.ts'
import { teamBoardOf } from './member.ts'
import type { SharedBoard } from './shared.ts'
import { startTeam, stopMember } from './teams.ts'
import { BoardHandle, type BoardSessions } from './verbs.ts'

export type TeamToolOptions = {
  /** The harness, once there is one. */
  readonly sessions: () => BoardSessions
}
const checkOptions = optionsOf<TeamToolOptions>('teamTool', { sessions: needed(callable) })

const MEMBERS_MAX = 16
const TASKS_MAX = 50

const input = object({
  action: choice('start a team, look at its board, add cards to it, or stop one member.', [
    'start',
    'look',
    'add',
    'stop',
  ]),
  members: optional(
    list(
      'start: who works on the cards.',
      object({
        name: text('Its name on the board.', { min: 1, max: 64 }),
        agent: text('Which of your subagents it is.', { min: 1, max: 64 }),
      }),
      { min: 1, max: MEMBERS_MAX },
    ),
  ),
  tasks: optional(
    list(
      'start, add: the cards, each complete in itself.',
      object({
        text: text('What is to be done.', { min: 1, max: 2_000 }),
        needs: optional(
          list('Cards that must be done first: "t1" is the first card of the board, and so on.', text('A card.')),
        ),
      }),
      { min: 1, max: TASKS_MAX },
    ),
  ),
  brief: optional(text('start: what all members must know beside their cards.', { min: 1, max: 8_000 })),
  member: optional(text('stop: which member.', { min: 1, max: 64 })),
})
type Args = Infer<typeof input>

/** For the `tools` of the agent that leads. Its subagents are those of `teamAgents`, and its harness has `boardPlanner`. */
export function teamTool(options: TeamToolOptions): Tool {
  checkOptions(options)
  return defineTool<Args>({
    name: 'team',
    description:
      'A team of your subagents that work on the cards of one board, each card once. It goes on by itself: what a member says at its end comes to you as a message. Every answer shows the board.',
    input,
    // A team that is started again is the same team, and cards are added under the key of the call.
    effect: 'idempotent',
    sequential: true,
    polling: true,
    execute: (args, { session, key }) => lead(options.sessions(), args, session, key),
  })
}

async function lead(sessions: BoardSessions, args: Args, session: string, key: string): Promise<Output> {
  try {
    if (rootIdOf(session) !== session)
      throw new Fault('invalid_input', 'A subagent does not lead a team. Do the task yourself.', 'NotLead')
    const board = new BoardHandle(sessions, teamBoardOf(session))
    return shown(await actedOn(sessions, board, args, session, key))
  } catch (error) {
    if (!(error instanceof Fault) || (error.code !== 'invalid_input' && error.code !== 'too_many')) throw error
    throw new ToolFailure('InvalidInput', error.message, { error_type: error.detail || 'Refused' })
  }
}

async function actedOn(
  sessions: BoardSessions,
  board: BoardHandle,
  { action, members = [], tasks = [], brief, member = '' }: Args,
  session: string,
  key: string,
): Promise<SharedBoard> {
  if (action === 'start') {
    if (members.length === 0 || tasks.length === 0)
      throw new Fault('invalid_input', 'To start a team, give its members and its tasks.', 'Incomplete')
    if ((await sessions.status(board.id)) !== null) await checkSame(board, members)
    const said = brief === undefined ? {} : { brief }
    return (await startTeam(sessions, { lead: session, members, tasks: tasks.map(cardOf), ...said })).board.read()
  }
  if ((await sessions.status(board.id)) === null)
    throw new Fault('invalid_input', 'You lead no team yet. Start one with its members and tasks.', 'NoTeam')
  if (action === 'add') {
    if (tasks.length === 0) throw new Fault('invalid_input', 'To add cards, give them as tasks.', 'Incomplete')
    await board.say({ action: 'add', by: 'host', cards: tasks.map(cardOf) }, key)
    return board.read()
  }
  if (action === 'stop') await stopMember(sessions, board, member)
  return board.look()
}

type Task = NonNullable<Args['tasks']>[number]

function cardOf({ text: said, needs }: Task): { readonly text: string; readonly needs?: readonly string[] } {
  return needs === undefined ? { text: said } : { text: said, needs }
}

/** A start that was lost with its worker, maybe before its board was open, is made again with the same members. Another team beside the first there is not. */
async function checkSame(board: BoardHandle, wanted: readonly { readonly name: string }[]): Promise<void> {
  const members = await board.read().then(
    (open) => open.members,
    () => null,
  )
  if (members === null) return
  const same = members.length === wanted.length && wanted.every(({ name }) => members.some((one) => one.name === name))
  if (!same)
    throw new Fault('invalid_input', 'You lead a team already. Add cards to its board, or stop a member.', 'TeamExists')
}

function shown(board: SharedBoard): Output {
  const rows = board.members.map(({ name, rests }) => `- ${name}${rests === undefined ? '' : ` (${rests})`}`)
  return output({
    content: `${boardText(board)}\n\nMembers:\n${rows.join('\n')}`,
    metadata: { version: board.version },
  })
}
