// The worktrees of children: their description for the parent, and their removal when the parent ends. Loaded by the
// first run that ends with a worktree.
import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { WorktreeReport } from '../../kernel/content.ts'
import type { Session } from '../../kernel/session.ts'
import type { CompleteStore } from '../../ports/store.ts'
import { WORKTREES } from '../../tools/files/harness-folders.ts'
import {
  changesOf,
  describeFiles,
  overlapsOf,
  sweepWorktrees,
  type Worktree,
  listWorktrees,
} from '../../tools/worktrees/worktree.ts'
import { listChildren, childStatus } from '../state/children-below.ts'

const FILES_MAX = 100
const WHY_CHARS_MAX = 300

/** Sweeps the worktrees of children that nobody needs, and describes what is left for the parent. */
export async function settleWorktrees(
  store: CompleteStore,
  id: string,
  session: Session,
): Promise<WorktreeReport | null> {
  const { folder, parent } = session
  if (folder === undefined) return null
  // A worktree that cannot be removed now stays, and is tried again at the next end.
  const left = existsSync(join(folder, WORKTREES)) ? await sweepChildWorktrees(store, id, folder).catch(() => []) : []
  if (!parent || parent.parks) return null
  return addLeftWorktrees(await describeWorktree(store, id, session), left)
}

/**
 * Describes the worktree of a child for its parent; null if the child has none. If git fails, the report is sent all
 * the same.
 */
export async function describeWorktree(
  store: CompleteStore,
  id: string,
  { parent, folder }: Session,
): Promise<WorktreeReport | null> {
  if (parent === null || folder === undefined) return null
  const above = (await store.card(parent.session))?.folder
  if (above === undefined || above === folder) return null
  try {
    const found = (await listWorktrees(above)).find((one) => one.folder === folder)
    return found === undefined ? null : await buildWorktreeReport(store, id, above, found)
  } catch (error) {
    const why = (error instanceof Error ? error.message : String(error)).slice(0, WHY_CHARS_MAX)
    return {
      lines: [`Its worktree ${folder} could not be looked at: ${why}`],
      metadata: { worktree: { path: folder } },
    }
  }
}

async function buildWorktreeReport(
  store: CompleteStore,
  id: string,
  above: string,
  found: Worktree,
): Promise<WorktreeReport> {
  const { path, branch, parent } = found
  const { files } = await changesOf(above, found)
  const shared = await overlapsOf(above, found)
  const sessions = shared.length === 0 ? new Map<string, string>() : await sessionsByWorktree(store, parent, above)
  const overlaps = shared.slice(0, FILES_MAX).map((one) => ({
    file: one.file,
    with: one.with.map((other) => sessions.get(other) ?? other),
  }))
  const lines = [
    `Worktree: ${path}`,
    `Branch: ${branch}`,
    files.length === 0 ? 'Changed files: none' : `Changed files (${files.length}): ${describeFiles(files)}`,
    ...overlaps.map((one) => `Overlap: ${one.file} was changed by ${id} and by ${one.with.join(', ')}.`),
  ]
  const told = files.slice(0, FILES_MAX)
  return { lines, metadata: { worktree: { path, branch, files: told, ...(overlaps.length > 0 ? { overlaps } : {}) } } }
}

/** The sessions that work in the worktrees of a folder, by the ids of the worktrees. */
async function sessionsByWorktree(
  store: CompleteStore,
  parent: string,
  above: string,
): Promise<ReadonlyMap<string, string>> {
  const places = new Map((await listWorktrees(above)).map(({ id, folder }) => [folder, id]))
  const sessions = new Map<string, string>()
  for await (const { folder, session } of listChildren(store, parent)) {
    const id = folder === undefined ? undefined : places.get(folder)
    if (id !== undefined) sessions.set(id, session)
  }
  return sessions
}

const REPORT_END = '\n</subagent_report>'

/** Adds lines to the report of a child. */
export function addReportLines(text: string, lines: readonly string[]): string {
  if (lines.length === 0) return text
  const said = lines.join('\n').replaceAll('</subagent_report', '<\\/subagent_report')
  return text.endsWith(REPORT_END) ? `${text.slice(0, -REPORT_END.length)}\n${said}${REPORT_END}` : `${text}\n${said}`
}

/** A worktree is created before its session is. One as new as this may still be waiting for it. */
const NEW_WORKTREE_MS = 60_000

/**
 * A parent has ended: the worktrees of its children without changes are removed, unless a child works there. A child
 * that gets more to do gets its worktree again. Returns a line for each that stays because of its changes.
 */
async function sweepChildWorktrees(store: CompleteStore, parent: string, folder: string): Promise<readonly string[]> {
  const working = new Set<string>()
  const known = new Set<string>()
  for await (const card of listChildren(store, parent)) {
    if (card.folder === undefined) continue
    known.add(card.folder)
    const status = childStatus(card)
    if (status === 'running' || status === 'awaiting_user') working.add(card.folder)
  }
  const left = await sweepWorktrees(folder, parent, async (one) => {
    if (working.has(one.folder)) return true
    return !known.has(one.folder) && store.now() - (await stat(one.path)).ctimeMs < NEW_WORKTREE_MS
  })
  const lines: string[] = []
  for (const one of left) {
    const { files } = await changesOf(folder, one)
    if (files.length > 0)
      lines.push(`Not merged yet: ${one.branch} in ${one.path}, with changes in ${describeFiles(files)}.`)
  }
  return lines
}

/** Adds the worktrees with changes that the child's own children left. */
function addLeftWorktrees(seen: WorktreeReport | null, left: readonly string[]): WorktreeReport | null {
  if (left.length === 0) return seen
  return { lines: [...(seen?.lines ?? []), ...left], metadata: seen?.metadata ?? {} }
}
