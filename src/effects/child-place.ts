// Where a new child works and with what: a worktree of its own, paths of its own, the tools of one toolkit. All of it is settled before
// the child is made, so that the log has it with the reply. Loaded by the first task that asks for any of it.
import { rankTools } from '../tools/agents/rank.ts'
import type { Card } from '../ports/store.ts'
import { agentIn } from '../engine/wiring.ts'
import type { Tool } from '../tools/core/tool.ts'
import { claimsOf } from '../tools/files/claims.ts'
import { ToolFailure } from '../tools/core/output.ts'
import { type BaseRef, makeWorktree, restoreWorktree } from '../tools/worktrees/worktree.ts'
import { shortened } from '../view/text.ts'
import type { Admitting } from './admit-reply.ts'
import { boundsBelow, toolsWithin } from './narrowing.ts'

const ID_CHARS = 12

/**
 * The child's name is known only with the reply, so the worktree has an id of its own, and the child is told the folder. One that was
 * made for a reply that is lost is clean, and swept at the end of a run.
 */
export async function newWorktree({ services, cache }: Admitting, base: BaseRef = 'head'): Promise<string> {
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

/** A child whose worktree was swept gets it again before it is told more. */
export async function restored({ cache }: Admitting, { session, folder: place }: Card): Promise<void> {
  const { folder } = cache.session
  if (folder === undefined || place === undefined || place === folder) return
  await restoreWorktree({ folder, id: session, parent: cache.id }, place)
}

type Writing = { readonly child: string; readonly ownership?: readonly string[]; readonly apart: boolean }
type Owned = { readonly owns?: readonly string[] } | { readonly refused: string }

/** The paths of each of several tasks, or why it cannot start. Tasks that work `apart` need none. */
export async function ownedBy(admitting: Admitting, tasks: readonly (Writing | null)[]): Promise<readonly Owned[]> {
  const { folder } = admitting.cache.session
  const writers = await Promise.all(
    tasks.map(async (task, i) => {
      const { child = '', ownership, apart = true } = task ?? {}
      const writes = !apart && (await toolsOf(admitting, child)).some(writesFiles)
      return { owner: `task ${i + 1}`, writes, ...(ownership ? { ownership } : {}) }
    }),
  )
  const claimed = await claimsOf(folder ?? process.cwd(), writers)
  return claimed.map((one) => ('refused' in one ? one : one.claims === null ? {} : { owns: one.claims.own }))
}

/** Tools that work in a folder and change what is in it: the file tools that write, and programs. */
function writesFiles({ rooted, effect }: Tool): boolean {
  return rooted !== undefined && effect !== 'read'
}

/** Of the tools of a toolkit those that fit the prompt, by name. */
export async function toolkitFor(
  admitting: Admitting,
  child: string,
  toolkit: string,
  prompt: string,
): Promise<readonly string[]> {
  const tools = await toolsOf(admitting, child)
  const own = tools.filter(({ mcp }) => mcp?.server === toolkit)
  if (own.length > 0) return rankTools(own, prompt).map(({ name }) => name)
  const known = [...new Set(tools.flatMap(({ mcp }) => mcp?.server ?? []))].sort()
  const there = known.length === 0 ? `"${child}" has none` : `"${child}" has: ${known.join(', ')}`
  throw new ToolFailure('NotFound', `There is no toolkit "${shortened(toolkit, 64)}"; ${there}.`, {
    error_type: 'UnknownToolkit',
  })
}

/** As the child will have them: what works elsewhere has the same names. */
async function toolsOf({ services, cache, flight }: Admitting, child: string): Promise<readonly Tool[]> {
  const { tools } = agentIn(services, { ...cache.session, agent: child })
  const all = tools.seen ?? (await tools.open(flight))
  return [...toolsWithin(all, boundsBelow(cache) ?? {}).values()]
}
