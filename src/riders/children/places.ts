// The worktrees of children, as their parent is told of them, and what becomes of them when the parent ends. Loaded by the first
// commit of a session that has to do with one.
import { stat } from 'node:fs/promises'
import type { Json } from '../../kernel/content.ts'
import type { InboxBody } from '../../kernel/event.ts'
import type { Session } from '../../kernel/session.ts'
import type { Send } from '../../engine/commit.ts'
import type { Store } from '../../ports/store.ts'
import {
  changesOf,
  listed,
  overlapsOf,
  sweepWorktrees,
  type Worktree,
  worktreesOf,
} from '../../tools/worktrees/worktree.ts'
import { childrenBelow, childStatus } from './status.ts'

const FILES_MAX = 100
const WHY_CHARS_MAX = 300

export type Seen = { readonly lines: readonly string[]; readonly metadata: { readonly [name: string]: Json } }

/** What a parent is told of the worktree of its child; null if the child has none. What git cannot say keeps no report back. */
export async function seenPlace(store: Store, id: string, { parent, folder }: Session): Promise<Seen | null> {
  if (parent === null || folder === undefined) return null
  const above = (await store.card(parent.session))?.folder
  if (above === undefined || above === folder) return null
  try {
    const found = (await worktreesOf(above)).find((one) => one.folder === folder)
    return found === undefined ? null : await seen(store, id, above, found)
  } catch (error) {
    const why = (error instanceof Error ? error.message : String(error)).slice(0, WHY_CHARS_MAX)
    return {
      lines: [`Its worktree ${folder} could not be looked at: ${why}`],
      metadata: { worktree: { path: folder } },
    }
  }
}

async function seen(store: Store, id: string, above: string, found: Worktree): Promise<Seen> {
  const { path, branch, parent } = found
  const { files } = await changesOf(above, found)
  const shared = await overlapsOf(above, found)
  const sessions = shared.length === 0 ? new Map<string, string>() : await sessionsIn(store, parent, above)
  const overlaps = shared.slice(0, FILES_MAX).map((one) => ({
    file: one.file,
    with: one.with.map((other) => sessions.get(other) ?? other),
  }))
  const lines = [
    `Worktree: ${path}`,
    `Branch: ${branch}`,
    files.length === 0 ? 'Changed files: none' : `Changed files (${files.length}): ${listed(files)}`,
    ...overlaps.map((one) => `Overlap: ${one.file} was changed by ${id} and by ${one.with.join(', ')}.`),
  ]
  const told = files.slice(0, FILES_MAX)
  return { lines, metadata: { worktree: { path, branch, files: told, ...(overlaps.length > 0 ? { overlaps } : {}) } } }
}

/** The sessions that work in the worktrees of a folder, by the ids of the worktrees. */
async function sessionsIn(store: Store, parent: string, above: string): Promise<ReadonlyMap<string, string>> {
  const places = new Map((await worktreesOf(above)).map(({ id, folder }) => [folder, id]))
  const sessions = new Map<string, string>()
  for await (const { folder, session } of childrenBelow(store, parent)) {
    const id = folder === undefined ? undefined : places.get(folder)
    if (id !== undefined) sessions.set(id, session)
  }
  return sessions
}

/** The words of a child with what is to be said of its worktree: in the text, and beside it where there is room. */
export function withPlace(send: Send, { lines, metadata }: Seen): Send {
  return { ...send, event: placedIn(send.event, lines, metadata) }
}

const CLOSING = '\n</subagent_report>'

function placedIn(event: InboxBody, lines: readonly string[], metadata: Seen['metadata']): InboxBody {
  if (event.type === 'user.custom_tool_result') {
    const about = { ...(event.metadata as Seen['metadata'] | undefined), ...metadata }
    // An answer by a schema stays what it is.
    const content = 'structured_output' in about ? event.content : `${event.content}\n${lines.join('\n')}`
    return { ...event, content, metadata: about }
  }
  if (event.type !== 'user.message') return event
  const parts = event.parts.map((part) =>
    part.type === 'text' ? { ...part, text: placedText(part.text, lines) } : part,
  )
  return { ...event, parts }
}

export function placedText(text: string, lines: readonly string[]): string {
  if (lines.length === 0) return text
  const said = lines.join('\n').replaceAll('</subagent_report', '<\\/subagent_report')
  return text.endsWith(CLOSING) ? `${text.slice(0, -CLOSING.length)}\n${said}${CLOSING}` : `${text}\n${said}`
}

/** A worktree is made before its session is: one as new as this may be waiting for it. */
const NEW_MS = 60_000

/**
 * A parent has ended: the worktrees of its children in which nothing was changed are removed, unless a child works there. A child that
 * is given more to do gets its worktree again. Returns a line for each that stays because of its changes.
 */
export async function sweptBelow(store: Store, parent: string, folder: string): Promise<readonly string[]> {
  const working = new Set<string>()
  const known = new Set<string>()
  for await (const card of childrenBelow(store, parent)) {
    if (card.folder === undefined) continue
    known.add(card.folder)
    const status = childStatus(card)
    if (status === 'running' || status === 'awaiting_user') working.add(card.folder)
  }
  const left = await sweepWorktrees(folder, parent, async (one) => {
    if (working.has(one.folder)) return true
    return !known.has(one.folder) && store.now() - (await stat(one.path)).ctimeMs < NEW_MS
  })
  const lines: string[] = []
  for (const one of left) {
    const { files } = await changesOf(folder, one)
    if (files.length > 0) lines.push(`Not merged yet: ${one.branch} in ${one.path}, with changes in ${listed(files)}.`)
  }
  return lines
}

/** What a parent is told also names the worktrees with changes that the child's own children left. */
export function withLeft(seen: Seen | null, left: readonly string[]): Seen | null {
  if (left.length === 0) return seen
  return { lines: [...(seen?.lines ?? []), ...left], metadata: seen?.metadata ?? {} }
}
