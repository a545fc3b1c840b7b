// A team: a board, and one child session for each member. The session that starts it is the lead, and reports of
// members come to it as messages. There is no loop here: members claim cards, the board learns of the end of each
// member's run, and it tells resting members about free cards.
import { Fault } from '../kernel/failure.ts'
import type { Session } from '../sessions/verbs.ts'
import type { Model } from '../ports/model.ts'
import { functionCheck, nonEmptyCheck, listCheck, requiredCheck, optionsChecker, objectCheck } from '../options.ts'
import { modelCheck, type SubagentOptions } from '../sessions/agent.ts'
import { type MemberToolOptions, memberTool, teamBoardOf } from './member-tool.ts'
import { taskName } from '../runtime/turn/child-orders.ts'
import { LIKE_PARENT } from '../tools/agents/subagent.ts'
import { isFree, type Member, type NewTask, type SharedBoard } from './shared-board.ts'
import { type BoardHandle, type BoardSessions, openBoard } from './board-handle.ts'
import { BOARD, GO_ON } from './board-planner.ts'
import { readSessionCard } from './session-card.ts'

/** A member of a team. */
export type TeamMember = {
  /** The name of the member on the board. */
  readonly name: string
  /** The subagent of the harness that it is. */
  readonly agent: string
}
/** What a team begins with: its lead, members and tasks. */
export type TeamOptions = {
  /** The session of the lead. */
  readonly lead: string
  /** The members of the team, each with a name and its agent. */
  readonly members: readonly TeamMember[]
  /** The cards that the board of the team begins with. */
  readonly tasks: readonly NewTask[]
  /** Text for all members, beside the board. */
  readonly brief?: string
}
const checkTeam = optionsChecker<TeamOptions>('startTeam', {
  lead: requiredCheck(nonEmptyCheck),
  members: requiredCheck(listCheck(objectCheck)),
  tasks: requiredCheck(listCheck(objectCheck)),
  brief: nonEmptyCheck,
})

/** A team at work: its board, the sessions of its members, and what moves it on. */
export type Team = {
  /** The board of the team. */
  readonly board: BoardHandle
  /** The sessions of the members, by name. */
  readonly sessions: ReadonlyMap<string, string>
  /** The board, after the cards of ended members were released. */
  readonly look: () => Promise<SharedBoard>
  /**
   * The same, and resting members are told to go on while a card is free. The board does that by itself when a member's
   * run ends; this is for members that someone stopped, or that no worker tries any more.
   */
  readonly advance: () => Promise<SharedBoard>
  /** Stops a member. Its cards are free again. */
  readonly shutdown: (name: string) => Promise<void>
}

/** Which models the agents of a team have. */
export type TeamAgents = Pick<MemberToolOptions, 'sessions'> & {
  /** The name of the agent that leads. */
  readonly lead?: string
  /** The model of that agent. Absent: its own. */
  readonly leadModel?: Model | string
  /** The model of all other agents. Absent: each has its own. */
  readonly agentModel?: Model | string
}
const checkAgents = optionsChecker<TeamAgents>('teamAgents', {
  sessions: requiredCheck(functionCheck),
  lead: nonEmptyCheck,
  leadModel: modelCheck,
  agentModel: modelCheck,
})

/** For `subagents` of a harness: each with the board's tool, and with the model that the team sets. */
export function teamAgents(
  agents: Readonly<Record<string, SubagentOptions>>,
  options: TeamAgents,
): Readonly<Record<string, SubagentOptions>> {
  checkAgents(options)
  const { sessions, lead, leadModel, agentModel } = options
  const tool = memberTool({ sessions })
  const entries = Object.entries(agents).map(([name, agent]) => {
    const model = name === lead ? leadModel : agentModel
    return [
      name,
      { ...agent, tools: [...(agent.tools ?? []), tool], ...(model === undefined ? {} : { model }) },
    ] as const
  })
  return Object.fromEntries(entries)
}

/** When this resolves, the board exists and every member works. Starting it again continues with both. */
export async function startTeam(sessions: BoardSessions, options: TeamOptions): Promise<Team> {
  checkTeam(options)
  const { lead, members, tasks, brief = '' } = options
  const id = teamBoardOf(lead)
  const keyOf = (name: string): string => `${id}:${name}`
  // The board knows each member by the child that is started for it below, so a session cannot just claim to be one.
  const seats = members.map(({ name, agent }): Member => {
    const task = taskName(keyOf(name), { agent: agent === 'default' ? LIKE_PARENT : agent, toolkit: '', model: '' })
    return { name, role: 'worker', child: { parent: lead, task } }
  })
  const board = await openBoard(sessions, { id, members: seats, cards: tasks, reuse: true })
  const head: Session = sessions.session(lead)
  const places = new Map<string, string>()
  for (const { name, agent } of members) {
    const { sessionId } = await head.spawn(agent, memberPrompt(name, brief), { taskKey: keyOf(name), tells: id })
    places.set(name, sessionId)
  }
  return {
    board,
    sessions: places,
    look: () => board.look(),
    advance: async () => {
      const now = await board.look()
      if (!now.cards.some((card) => isFree(now, card))) return now
      for (const [name, place] of places) {
        const here = now.members.some((member) => member.name === name)
        const card = here ? await readSessionCard(sessions, place) : null
        if (card?.phase === 'resting' && card.status === 'idle') await sessions.session(place).send(GO_ON)
      }
      return now
    },
    shutdown: (name) => stopMember(sessions, board, name),
  }
}

/** Frees the member's cards and removes it from the board. */
export async function stopMember(sessions: BoardSessions, board: BoardHandle, name: string): Promise<void> {
  const member = (await board.read()).members.find((each) => each.name === name)
  if (member === undefined) throw new Fault('invalid_input', `There is no member "${name}".`, 'UnknownMember')
  const session = member.session ?? (await findChildSession(sessions, member))
  if (session !== undefined) await sessions.session(session).interrupt()
  await board.leave('host', name)
}

/** Finds the child session of a member that has not used the board yet. */
async function findChildSession(sessions: BoardSessions, { child }: Member): Promise<string | undefined> {
  if (child === undefined) return undefined
  const task = child.task.slice(0, child.task.lastIndexOf('#'))
  const rows = (await sessions.session(child.parent).status({ include: ['children'] })).children
  return rows.find((row) => row.task === task)?.sessionId
}

function memberPrompt(name: string, brief: string): string {
  const rule = `You are the member "${name}" of a team. Claim a card with the tool "${BOARD}", do it, and complete it; or fail it and say why. Go on until nothing is free.`
  return brief === '' ? rule : `${rule}\n\n${brief}`
}
