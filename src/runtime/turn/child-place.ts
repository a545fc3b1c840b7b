// Prepares the surroundings of a new child: its own worktree, its own paths, the tools of one toolkit. They are settled
// before the child is created, so that the log has them with the reply. Loaded by the first task that asks for any of
// them.
import { rankTools } from '../../tools/agents/rank-tools.ts'
import type { Card } from '../../ports/store.ts'
import { agentOfSession } from '../state/agent.ts'
import type { Tool } from '../../tools/core/tool.ts'
import { decideClaims } from '../../tools/files/path-claims.ts'
import { ToolFailure } from '../../tools/core/tool-output.ts'
import { type BaseRef, makeWorktree, restoreWorktree } from '../../tools/worktrees/worktree.ts'
import { shortenText } from '../../view/shown-text.ts'
import type { ReplyAdmission } from './admit-reply.ts'
import { boundsForChildren, toolsWithin } from './narrowing.ts'

const ID_CHARS = 12

/**
 * The child's name is known only with the reply, so the worktree has an id of its own, and the child is told the
 * folder. A worktree that was made for a lost reply is clean, and is swept at the end of a run.
 */
export async function createChildWorktree(
  { services, cache }: ReplyAdmission,
  base: BaseRef = 'head',
): Promise<string> {
  const { folder } = cache.session
  if (folder === undefined)
    throw new ToolFailure('Failed', 'This session has no folder to make a worktree from. Use isolation "none".', {
      error_type: 'WorktreeNoRepository',
    })
  const id = services.random
    .id()
    .replace(/[^A-Za-z0-9]/g, '')
    .slice(-ID_CHARS)
    .toLowerCase()
  return (await makeWorktree({ folder, id, parent: cache.id, base })).folder
}

/** Recreates a child's worktree that was swept, before the child gets another message. */
export async function restoreChildWorktree({ cache }: ReplyAdmission, { session, folder: place }: Card): Promise<void> {
  const { folder } = cache.session
  if (folder === undefined || place === undefined || place === folder) return
  await restoreWorktree({ folder, id: session, parent: cache.id }, place)
}

type WritingTask = { readonly child: string; readonly ownership?: readonly string[]; readonly apart: boolean }
type OwnedPaths = { readonly owns?: readonly string[] } | { readonly refused: string }

/** The paths that each of several tasks owns, or why the task cannot start. Tasks that work `apart` need none. */
export async function assignOwnedPaths(
  admitting: ReplyAdmission,
  tasks: readonly (WritingTask | null)[],
): Promise<readonly OwnedPaths[]> {
  const { folder } = admitting.cache.session
  const writers = await Promise.all(
    tasks.map(async (task, i) => {
      const { child = '', ownership, apart = true } = task ?? {}
      const writes = !apart && (await readChildTools(admitting, child)).some(writesFiles)
      return { owner: `task ${i + 1}`, writes, ...(ownership ? { ownership } : {}) }
    }),
  )
  const claimed = await decideClaims(folder ?? process.cwd(), writers)
  return claimed.map((one) => ('refused' in one ? one : one.claims === null ? {} : { owns: one.claims.own }))
}

/** The tool works in a folder and changes files there: file tools that write, and programs. */
function writesFiles({ rooted, effect }: Tool): boolean {
  return rooted !== undefined && effect !== 'read'
}

/** The names of the toolkit's tools that fit the prompt. */
export async function pickToolkitTools(
  admitting: ReplyAdmission,
  child: string,
  toolkit: string,
  prompt: string,
): Promise<readonly string[]> {
  const tools = await readChildTools(admitting, child)
  const own = tools.filter(({ mcp }) => mcp?.server === toolkit)
  if (own.length > 0) return rankTools(own, prompt).map(({ name }) => name)
  const known = [...new Set(tools.flatMap(({ mcp }) => mcp?.server ?? []))].sort()
  const there = known.length === 0 ? `"${child}" has none` : `"${child}" has: ${known.join(', ')}`
  throw new ToolFailure('NotFound', `There is no toolkit "${shortenText(toolkit, 64)}"; ${there}.`, {
    error_type: 'UnknownToolkit',
  })
}

/** The tools as the child will have them. Tools keep their names when they work in another folder. */
async function readChildTools({ services, cache, flight }: ReplyAdmission, child: string): Promise<readonly Tool[]> {
  const { tools } = agentOfSession(services, { ...cache.session, agent: child })
  const all = tools.seen ?? (await tools.open(flight))
  return [...toolsWithin(all, boundsForChildren(cache) ?? {}).values()]
}
