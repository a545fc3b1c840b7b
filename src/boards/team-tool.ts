// `team`: a model makes a team and leads it. The board and the members are those of `startTeam`. Reports of members
// come to the model as messages, and meanwhile the team goes on by itself.
import { Fault } from '../kernel/failure.ts'
import { functionCheck, requiredCheck, optionsChecker } from '../options.ts'
import { output, type Output, ToolFailure } from '../tools/core/tool-output.ts'
import {
  choiceField,
  type Infer,
  listField,
  objectField,
  optionalField,
  textField,
} from '../tools/core/argument-schema.ts'
import { defineTool, type Tool } from '../tools/core/tool.ts'
import { rootIdOf } from '../view/ids.ts'
import { boardText } from './board.ts'
import { teamBoardOf } from './member-tool.ts'
import type { SharedBoard } from './shared-board.ts'
import { startTeam, stopMember } from './teams.ts'
import { BoardHandle, type BoardSessions } from './board-handle.ts'
import { readSessionCard } from './session-card.ts'

/** Options of `teamTool`: the sessions in which members work. */
export type TeamToolOptions = {
  /** Returns the harness, which is made after this tool. */
  readonly sessions: () => BoardSessions
}
const checkOptions = optionsChecker<TeamToolOptions>('teamTool', { sessions: requiredCheck(functionCheck) })

const MEMBERS_MAX = 16
const TASKS_MAX = 50

const input = objectField({
  action: choiceField('start a team, look at its board, add cards to it, or stop one member.', [
    'start',
    'look',
    'add',
    'stop',
  ]),
  members: optionalField(
    listField(
      'start: who works on the cards.',
      objectField({
        name: textField('Its name on the board.', { min: 1, max: 64 }),
        agent: textField('Which of your subagents it is.', { min: 1, max: 64 }),
      }),
      { min: 1, max: MEMBERS_MAX },
    ),
  ),
  tasks: optionalField(
    listField(
      'start, add: the cards, each complete in itself.',
      objectField({
        text: textField('What is to be done.', { min: 1, max: 2_000 }),
        needs: optionalField(
          listField(
            'Cards that must be done first: "t1" is the first card of the board, and so on.',
            textField('A card.'),
          ),
        ),
      }),
      { min: 1, max: TASKS_MAX },
    ),
  ),
  brief: optionalField(textField('start: what all members must know beside their cards.', { min: 1, max: 8_000 })),
  member: optionalField(textField('stop: which member.', { min: 1, max: 64 })),
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
    // Starting a team again gives the same team, and cards are added once under the key of the call.
    effect: 'idempotent',
    sequential: true,
    polling: true,
    execute: (args, { session, key }) => runTeamAction(options.sessions(), args, session, key),
  })
}

async function runTeamAction(sessions: BoardSessions, args: Args, session: string, key: string): Promise<Output> {
  try {
    if (rootIdOf(session) !== session)
      throw new Fault('invalid_input', 'A subagent does not lead a team. Do the task yourself.', 'NotLead')
    const board = new BoardHandle(sessions, teamBoardOf(session))
    return teamOutput(await applyTeamAction(sessions, board, args, session, key))
  } catch (error) {
    if (!(error instanceof Fault) || (error.code !== 'invalid_input' && error.code !== 'too_many')) throw error
    throw new ToolFailure('InvalidInput', error.message, { error_type: error.detail || 'Refused' })
  }
}

async function applyTeamAction(
  sessions: BoardSessions,
  board: BoardHandle,
  { action, members = [], tasks = [], brief, member = '' }: Args,
  session: string,
  key: string,
): Promise<SharedBoard> {
  if (action === 'start') {
    if (members.length === 0 || tasks.length === 0)
      throw new Fault('invalid_input', 'To start a team, give its members and its tasks.', 'Incomplete')
    if ((await readSessionCard(sessions, board.id)) !== null) await checkSameMembers(board, members)
    const said = brief === undefined ? {} : { brief }
    return (await startTeam(sessions, { lead: session, members, tasks: tasks.map(newTaskOf), ...said })).board.read()
  }
  if ((await readSessionCard(sessions, board.id)) === null)
    throw new Fault('invalid_input', 'You lead no team yet. Start one with its members and tasks.', 'NoTeam')
  if (action === 'add') {
    if (tasks.length === 0) throw new Fault('invalid_input', 'To add cards, give them as tasks.', 'Incomplete')
    await board.say({ action: 'add', by: 'host', cards: tasks.map(newTaskOf) }, key)
    return board.read()
  }
  if (action === 'stop') await stopMember(sessions, board, member)
  return board.look()
}

type TaskInput = NonNullable<Args['tasks']>[number]

function newTaskOf({ text: said, needs }: TaskInput): { readonly text: string; readonly needs?: readonly string[] } {
  return needs === undefined ? { text: said } : { text: said, needs }
}

/**
 * A start may be made again with the same members, if its worker was lost, perhaps before the board was open. A second
 * team is refused.
 */
async function checkSameMembers(board: BoardHandle, wanted: readonly { readonly name: string }[]): Promise<void> {
  const members = await board.read().then(
    (open) => open.members,
    () => null,
  )
  if (members === null) return
  const same = members.length === wanted.length && wanted.every(({ name }) => members.some((one) => one.name === name))
  if (!same)
    throw new Fault('invalid_input', 'You lead a team already. Add cards to its board, or stop a member.', 'TeamExists')
}

function teamOutput(board: SharedBoard): Output {
  const rows = board.members.map(({ name, rests }) => `- ${name}${rests === undefined ? '' : ` (${rests})`}`)
  return output({
    content: `${boardText(board)}\n\nMembers:\n${rows.join('\n')}`,
    metadata: { version: board.version },
  })
}
