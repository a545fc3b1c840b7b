// Files of a session outside the database: the line with its folder, its runtime files, its local traces. They are
// removed after the session itself, so nothing is lost if the removal is refused. The next prune finds files that a
// crash left behind.
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Removed } from '../../index.ts'
import type { Removal, CompleteStore } from '../../kernel/index.ts'
import { clean } from '../../view/clean.ts'
import { forgetFolders } from './session-folders.ts'
import type { Home } from './cli-home.ts'
import { runtimeDir } from './folder-memory.ts'
import { fileErrorCode } from './plain-file.ts'
import { terretCommand, warn } from '../present/print.ts'
import { isChildId } from '../../view/ids.ts'

/** A file that cannot be removed is only a warning, because the session itself is gone. */
export async function sweepFiles(home: Home, removed: readonly Removal[]): Promise<void> {
  if (removed.length === 0) return
  await sweepRuntimeFiles(home, removed)
  await sweepTraces(home, removed)
  warnOnFailure(home.folders, () => forgetFolders(home, new Set(removed.map(({ session }) => session))))
}

/**
 * Removes sessions with `remove`, and their worktrees without changes. Worktrees with changes stay, and a warning names
 * them.
 */
export async function removeAndReport(
  store: CompleteStore,
  sessions: readonly string[],
  remove: () => Promise<readonly Removal[]>,
): Promise<readonly Removal[]> {
  const gone = await (await import('../../tools/worktrees/remove-worktrees.ts')).removeAndSweep(store, sessions, remove)
  for (const why of gone.troubles) warn(clean(`A worktree of it could not be looked at: ${why}`))
  warnOfWorktrees(gone.worktrees)
  return gone.removed
}

export function warnOfWorktrees(left: NonNullable<Removed['worktrees']>): void {
  for (const { path, branch } of left)
    warn(clean(`The worktree ${path} (${branch}) has changes or is in use, and stays. See: ${terretCommand`worktree`}`))
}

/** Removes files that earlier removals left behind, for example after a crash. */
export async function sweepLostFiles(home: Home, store: CompleteStore): Promise<void> {
  const removals = await store.removals(LOST_MAX)
  const lost: Removal[] = []
  for (const removal of removals) if ((await store.card(removal.session)) === null) lost.push(removal)
  await sweepFiles(home, lost)
}

/** The number is limited, because each event of each session may have a trace. */
const LOST_MAX = 10_000

async function sweepRuntimeFiles(home: Home, removed: readonly Removal[]): Promise<void> {
  const dir = runtimeDir(home)
  const there = new Set(namesIn(dir))
  if (there.size === 0) return
  const { folderName } = await import('../../memory/runtime-files.ts')
  for (const { session } of removed) {
    const name = folderName(session)
    if (there.has(name)) removePath(join(dir, name))
  }
}

/**
 * A trace is named after its root and the first event of the run, so every event of a removed root may have one. The
 * prompts of a project without traces are removed too.
 */
async function sweepTraces({ folder }: Home, removed: readonly Removal[]): Promise<void> {
  const projects = namesIn(join(folder, 'traces')).map((name) => join(folder, 'traces', name))
  const files = new Map(projects.flatMap((project) => namesIn(project).map((name) => [name, project] as const)))
  if (files.size === 0) return
  const { traceIdOf } = await import('../../view/spans/span.ts')
  const emptied = new Set<string>()
  for (const { session, events } of removed.filter((each) => !isChildId(each.session))) {
    for (let run = 1; run <= events; run++) {
      const name = `${traceIdOf(session, run)}.jsonl`
      const project = files.get(name)
      if (project === undefined) continue
      removePath(join(project, name))
      emptied.add(project)
    }
  }
  for (const project of emptied) if (!namesIn(project).some((name) => name.endsWith('.jsonl'))) removePath(project)
}

function namesIn(dir: string): readonly string[] {
  try {
    return readdirSync(dir)
  } catch {
    return []
  }
}

function removePath(path: string): void {
  warnOnFailure(path, () => rmSync(path, { recursive: true, force: true }))
}

function warnOnFailure(path: string, act: () => void): void {
  try {
    act()
  } catch (error) {
    warn(`${clean(path)} could not be taken away (${fileErrorCode(error)}). Remove it yourself.`)
  }
}
