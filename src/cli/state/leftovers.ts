// What is kept of a session beside the database: the line with its folder, its runtime files, its local traces. They go after the
// session itself, so that nothing is lost when its removal is refused; what a crash leaves behind is found by the next prune.
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Removal, Store } from '../../kernel/index.ts'
import { clean } from '../present/clean.ts'
import { forgetFolders, startedSessions } from './folders.ts'
import type { Home } from './home.ts'
import { runtimeDir } from './memory.ts'
import { codeOf } from './plain-file.ts'
import { warn } from '../present/print.ts'

/** What cannot be taken away is said, and stops nothing: the session is gone. */
export async function sweep(home: Home, removed: readonly Removal[]): Promise<void> {
  if (removed.length === 0) return
  // Their lines go last: as long as one stands there, the next prune looks for the rest.
  await sweepRuntimeFiles(home, removed)
  await sweepTraces(home, removed)
  tried(home.folders, () => forgetFolders(home, new Set(removed.map(({ session }) => session))))
}

/** Sessions that were removed by somebody who did not come so far as to take these along. */
export async function sweepLost(home: Home, store: Store): Promise<void> {
  const removals = await store.removals(LOST_MAX)
  const removed = new Set(removals.map(({ session }) => session))
  const lost = new Set<string>()
  for (const { session } of removed.size > 0 ? startedSessions(home) : [])
    if (removed.has(session) && (await store.card(session)) === null) lost.add(session)
  // Only roots have a line. Children begin with their root's name.
  await sweep(
    home,
    removals.filter(({ session }) => lost.has(session.split('~')[0] ?? '')),
  )
}

const LOST_MAX = 100_000

async function sweepRuntimeFiles(home: Home, removed: readonly Removal[]): Promise<void> {
  const dir = runtimeDir(home)
  const there = new Set(namesIn(dir))
  if (there.size === 0) return
  const { folderName } = await import('../../memory/files.ts')
  for (const { session } of removed) {
    const name = folderName(session)
    if (there.has(name)) drop(join(dir, name))
  }
}

/**
 * A trace is named after its root and the event that began the run: so every event of a removed root may have one. A project with
 * no trace left needs no prompts either.
 */
async function sweepTraces({ folder }: Home, removed: readonly Removal[]): Promise<void> {
  const projects = namesIn(join(folder, 'traces')).map((name) => join(folder, 'traces', name))
  const files = new Map(projects.flatMap((project) => namesIn(project).map((name) => [name, project] as const)))
  if (files.size === 0) return
  const { traceIdOf } = await import('../../tracing/span.ts')
  const emptied = new Set<string>()
  for (const { session, events } of removed.filter((each) => !each.session.includes('~'))) {
    for (let run = 1; run <= events; run++) {
      const name = `${traceIdOf(session, run)}.jsonl`
      const project = files.get(name)
      if (project === undefined) continue
      drop(join(project, name))
      emptied.add(project)
    }
  }
  for (const project of emptied) if (!namesIn(project).some((name) => name.endsWith('.jsonl'))) drop(project)
}

function namesIn(dir: string): readonly string[] {
  try {
    return readdirSync(dir)
  } catch {
    return []
  }
}

function drop(path: string): void {
  tried(path, () => rmSync(path, { recursive: true, force: true }))
}

function tried(path: string, act: () => void): void {
  try {
    act()
  } catch (error) {
    warn(`${clean(path)} could not be taken away (${codeOf(error)}). Remove it yourself.`)
  }
}
