// A team: a board, and one child for each member that works on it. The lead is the session that starts it; what members report comes to
// it as messages. There is no loop here: members claim, the end of each member's run is told to the board, and the board tells members
// that rest of cards that are free.
import { Fault } from '../kernel/failure.ts'
import type { Session } from '../sessions/verbs.ts'
import type { Model } from '../ports/model.ts'
import { callable, filled, listOf, needed, optionsOf, record } from '../options.ts'
import { modelCheck, type SubagentOptions } from '../sessions/agent.ts'
import { type MemberToolOptions, memberTool, teamBoardOf } from './member.ts'
import { taskName } from '../effects/orders.ts'
import { LIKE_PARENT } from '../tools/agents/subagent.ts'
import { isFree, type Member, type NewTask, type SharedBoard } from './shared.ts'
import { type BoardHandle, type BoardSessions, openBoard } from './verbs.ts'
import { BOARD, GO_ON } from './planner.ts'

/** `agent`: the subagent of the harness that it is. */
export type TeamMember = { readonly name: string; readonly agent: string }
export type TeamOptions = {
  /** The session of the lead. */
  readonly lead: string
  readonly members: readonly TeamMember[]
  readonly tasks: readonly NewTask[]
  /** What all members are told beside the board. */
  readonly brief?: string
}
const checkTeam = optionsOf<TeamOptions>('startTeam', {
  lead: needed(filled),
  members: needed(listOf(record)),
  tasks: needed(listOf(record)),
  brief: filled,
})

export type Team = {
  readonly board: BoardHandle
  /** The sessions of the members, by name. */
  readonly sessions: ReadonlyMap<string, string>
  /** The board, after what ended members held was given back. */
  readonly look: () => Promise<SharedBoard>
  /**
   * The same; and members that rest are told to go on while a card is free. The board does so by itself when a member's run ends: this
   * is for members that somebody stopped, or that no worker tries any more.
   */
  readonly advance: () => Promise<SharedBoard>
  /** Stops a member. Its cards are free again. */
  readonly shutdown: (name: string) => Promise<void>
}

/** `leadModel` is for the agent that is named `lead`, `agentModel` for all others. Absent: each has its own. */
export type TeamAgents = Pick<MemberToolOptions, 'sessions'> & {
  readonly lead?: string
  readonly leadModel?: Model | string
  readonly agentModel?: Model | string
}
const checkAgents = optionsOf<TeamAgents>('teamAgents', {
  sessions: needed(callable),
  lead: filled,
  leadModel: modelCheck,
  agentModel: modelCheck,
})

/** For `subagents` of a harness: each with the tool of the board, and with the model that the team pins. */
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

/** The board is there and every member works when this resolves. Started again, it goes on with what is there. */
export async function startTeam(sessions: BoardSessions, options: TeamOptions): Promise<Team> {
  checkTeam(options)
  const { lead, members, tasks, brief = '' } = options
  const id = teamBoardOf(lead)
  const keyOf = (name: string): string => `${id}:${name}`
  // The board knows each member by the child that is started for it below, so no session is a member by its word alone.
  const seats = members.map(({ name, agent }): Member => {
    const task = taskName(keyOf(name), { agent: agent === 'default' ? LIKE_PARENT : agent, toolkit: '', model: '' })
    return { name, role: 'worker', child: { parent: lead, task } }
  })
  const board = await openBoard(sessions, { id, members: seats, cards: tasks, reuse: true })
  const head: Session = sessions.session(lead)
  const places = new Map<string, string>()
  for (const { name, agent } of members) {
    const { sessionId } = await head.spawn(agent, taskOf(name, brief), { taskKey: keyOf(name), tells: id })
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
        const card = here ? await sessions.status(place) : null
        if (card?.phase === 'resting' && card.status === 'idle') await sessions.session(place).send(GO_ON)
      }
      return now
    },
    shutdown: (name) => stopMember(sessions, board, name),
  }
}

/** Its cards are free again, and it is no member any more. */
export async function stopMember(sessions: BoardSessions, board: BoardHandle, name: string): Promise<void> {
  const member = (await board.read()).members.find((each) => each.name === name)
  if (member === undefined) throw new Fault('invalid_input', `There is no member "${name}".`, 'UnknownMember')
  const session = member.session ?? (await childOf(sessions, member))
  if (session !== undefined) await sessions.session(session).interrupt()
  await board.leave('host', name)
}

/** The child that is this member, which has not spoken to the board yet. */
async function childOf(sessions: BoardSessions, { child }: Member): Promise<string | undefined> {
  if (child === undefined) return undefined
  const task = child.task.slice(0, child.task.lastIndexOf('#'))
  const rows = await sessions.session(child.parent).children()
  return rows.find((row) => row.task === task)?.sessionId
}

function taskOf(name: string, brief: string): string {
  const rule = `You are the member "${name}" of a team. Claim a card with the tool "${BOARD}", do it, and complete it; or fail it and say why. Go on until nothing is free.`
  return brief === '' ? rule : `${rule}\n\n${brief}`
}
