// `board`: the shared board as a tool for the models of its members. A session acts only as the member whose place it
// has.
import { Fault } from '../kernel/failure.ts'
import { functionCheck, requiredCheck, optionsChecker } from '../options.ts'
import { type Output, output, ToolFailure } from '../tools/core/tool-output.ts'
import {
  choiceField,
  type Infer,
  integerField,
  objectField,
  optionalField,
  textField,
} from '../tools/core/argument-schema.ts'
import { defineTool, type Tool, type ToolContext } from '../tools/core/tool.ts'
import { boardText } from './board.ts'
import { BOARD } from './board-planner.ts'
import type { BoardOutcome, ClaimOutcome, Member, SharedBoard } from './shared-board.ts'
import { BoardHandle, type BoardSessions } from './board-handle.ts'
import { rootIdOf } from '../view/ids.ts'
import { readSessionCard } from './session-card.ts'

/** Options of `memberTool`: the sessions, and which board belongs to which of them. */
export type MemberToolOptions = {
  /** Returns the harness, which is made after this tool. */
  readonly sessions: () => BoardSessions
  /** The board of this session, by its id. Default: the board of the team that the session's root leads. */
  readonly board?: (session: string) => string
}
const checkOptions = optionsChecker<MemberToolOptions>('memberTool', {
  sessions: requiredCheck(functionCheck),
  board: functionCheck,
})

const input = objectField({
  action: choiceField('list the cards, claim one, or say what became of yours.', [
    'list',
    'claim',
    'complete',
    'fail',
    'release',
  ]),
  member: optionalField(textField('Your name on the board, if you are asked for it.', { min: 1, max: 64 })),
  card: optionalField(
    textField('Which card, such as "t2". claim without it takes the first that is free.', { min: 1, max: 40 }),
  ),
  attempt: optionalField(integerField('complete, fail, release: the number that the claim gave you.', { min: 1 })),
  note: optionalField(textField('What came of it, or why not.', { min: 1, max: 300 })),
})
type Args = Infer<typeof input>

/** The board of the team that this session leads or belongs to. */
export function teamBoardOf(session: string): string {
  return `${rootIdOf(session)}-${BOARD}`
}

/** The tool of a member of a team: it takes tasks of the shared board and says how they went. */
export function memberTool(options: MemberToolOptions): Tool {
  checkOptions(options)
  const { sessions, board = teamBoardOf } = options
  const tool = defineTool<Args>({
    name: BOARD,
    description:
      'The board of your team: claim a card, do it, then complete it or fail it. Every answer shows the board.',
    input,
    // Each change is applied once under the key of its call, so a lost call may be made again.
    effect: 'idempotent',
    sequential: true,
    polling: true,
    instructions: `Work on a card of the ${BOARD} only while you hold it. When your run ends, a card that you still hold is given back.`,
    execute: (args, context) => {
      const all = sessions()
      return runMemberAction(new BoardHandle(all, board(context.session)), all, args, context)
    },
  })
  // Without this tool a member could not move the board on, so tool lists do not remove it.
  return { ...tool, always: true }
}

async function runMemberAction(
  board: BoardHandle,
  sessions: Pick<BoardSessions, 'session'>,
  args: Args,
  { session, key }: ToolContext,
): Promise<Output> {
  try {
    const by = await resolveMember(board, sessions, session, args.member)
    const said = await applyMemberAction(board, by, args, key)
    return memberOutput(said, await board.read())
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'invalid_input') throw error
    throw new ToolFailure('InvalidInput', error.message, { error_type: error.detail || 'Refused' })
  }
}

/**
 * Finds the member of this session. In a team it is the member whose child session the lead started. On a board that
 * was opened without sessions, the first session that gives the name of a free place gets it.
 */
async function resolveMember(
  board: BoardHandle,
  sessions: Pick<BoardSessions, 'session'>,
  session: string,
  named: string | undefined,
): Promise<string> {
  const { members } = await board.read()
  const own = members.find((member) => member.session === session)
  if (own) return own.name
  const { task, parent } = (await readSessionCard(sessions, session)) ?? {}
  const name = members.find((member) => member.child && mayBeMember(member, task, parent))?.name ?? named
  if (name === undefined)
    throw new Fault(
      'invalid_input',
      'The board does not know this session. Give your name on it as "member".',
      'NoName',
    )
  if (members.some((member) => member.name === name && !mayBeMember(member, task, parent)))
    throw new Fault(
      'invalid_input',
      `"${name}" is another session of the team. Ask your lead which member you are.`,
      'NotMember',
    )
  await board.seat(name, session)
  return name
}

/** Whether a session with this task and parent may be the member. */
function mayBeMember({ child }: Member, task: string | undefined, parent: string | null | undefined): boolean {
  return child === undefined || (child.task === task && child.parent === parent)
}

async function applyMemberAction(board: BoardHandle, by: string, args: Args, key: string): Promise<BoardOutcome> {
  const { action, card, attempt, note } = args
  if (action === 'list') return { type: 'Changed' }
  if (action === 'claim') return board.claim(by, { key, ...(card === undefined ? {} : { card }) })
  if (card === undefined || attempt === undefined)
    throw new Fault('invalid_input', `To ${action}, give the card and the attempt that your claim named.`, 'Incomplete')
  await board[action](by, { card, attempt, key, ...(note === undefined ? {} : { note }) })
  return { type: 'Changed' }
}

function memberOutput(outcome: BoardOutcome, board: SharedBoard): Output {
  const said = outcome.type === 'Changed' ? '' : `${claimText(outcome as ClaimOutcome)}\n\n`
  return output({ content: `${said}${boardText(board)}`, metadata: { outcome, version: board.version } })
}

function claimText(outcome: ClaimOutcome): string {
  switch (outcome.type) {
    case 'Started':
      return `Started: ${outcome.card.id} is yours (attempt ${outcome.attempt}): ${outcome.card.text}`
    case 'Blocked':
      return `Blocked: ${outcome.unmet.length > 0 ? `${outcome.unmet.join(', ')} must be done first.` : 'a person must look at it.'}`
    case 'AlreadyClaimed':
      return `AlreadyClaimed: ${outcome.by} has it. Claim another.`
    case 'AlreadyActive':
      return `AlreadyActive: you hold ${outcome.card}. Complete it or fail it first, or claim it by name to go on with it.`
    case 'NoClaimableTask':
      return 'NoClaimableTask: nothing is free now. If the rest is held by others, end your run.'
    case 'UnknownTask':
      return 'UnknownTask: there is no such card.'
  }
}
