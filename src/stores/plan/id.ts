// Which names the stores accept for sessions, events, workers, accounts and holds, and how they are ordered.
// How names are made is for the callers; what the harness itself names, it names so that no caller can.
import { hash } from 'node:crypto'
import type { CallKey } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import { shownId } from '../../view/clean.ts'
import { isChildId, rootIdOf } from '../../view/ids.ts'

const ID_LENGTH_MAX = 512

/**
 * What callers may name a session. It stands in tables, addresses, names of files and commands to paste, so it has no character that
 * means something to one of these. A leading dash is allowed, as many random ids have one: `shellCommand` keeps it from being a flag.
 */
const OUTER = /^[A-Za-z0-9._:~-]{1,128}$/
/** Steps of a path, and the word by which the command line names the newest session. */
const RESERVED: ReadonlySet<string> = new Set(['.', '..', 'latest'])

/** For the id of a session that comes from outside. The ids of children are made here, from that of their root. */
export function checkSessionId(id: unknown): void {
  const root = typeof id === 'string' ? rootIdOf(id) : ''
  if (isStoreId(id) && OUTER.test(root) && !RESERVED.has(root)) return
  const what = typeof id === 'string' && id !== '' ? `The session id "${shownId(id)}"` : 'A session id that is empty'
  throw new Fault(
    'invalid_input',
    `${what} cannot be used: it must be 1 to 128 letters, digits, ".", "_", ":", "~" or "-", and not ".", ".." or "latest". Choose another.`,
  )
}

/** Characters that are not drawn, or that turn the direction of the text around them. */
const UNDRAWN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u

/** Names are stored and compared as UTF-8: what has no UTF-8 form could become another's name. */
export function isStoreId(id: unknown): id is string {
  return typeof id === 'string' && id.length > 0 && id.length <= ID_LENGTH_MAX && !/[\0\uD800-\uDFFF]/u.test(id)
}

export function checkId(kind: string, id: unknown): void {
  if (isStoreId(id)) return
  throw new Fault('invalid_input', `The ${kind} must be 1 to ${ID_LENGTH_MAX} well-formed characters.`)
}

/** What the harness itself puts into an inbox has an id that begins like this, and nothing that callers send may. */
const OWN = 'terret:'

export function ownId(...parts: readonly (string | number)[]): string {
  return OWN + parts.join(':')
}

/** Of what stops the sessions below one. With the name of that one: a stop of another, for the same reason, is no repetition. */
export function stopId(session: string, why: string | number): string {
  return ownId('parent', 'stop', hash('sha256', JSON.stringify([session, why])))
}

/** The ids of what is sent together under one id of the caller's: the first has it as it is. */
export function idInBatch(id: string, index: number): string {
  return index === 0 ? id : ownId('batch', hash('sha256', id), index)
}

export function checkCallersId(id: string): void {
  checkId('id', id)
  if (UNDRAWN.test(id))
    throw new Fault('invalid_input', `The id "${shownId(id)}" has a character that is not drawn. Choose another.`)
  if (id.startsWith(OWN))
    throw new Fault('invalid_input', `An id cannot begin with "${OWN}": the harness's own ids do. Choose another.`)
}

/** The session that a call of this one opens; `n` tells apart those that one call opens. */
export function childId(session: string, call: CallKey, n: number | null = null): string {
  return `${session}~${call}${n === null ? '' : `.${n}`}`
}

/** For a session that is made. One that would have the name of another's child would stand in that child's way. */
export function checkRootId(id: string): void {
  checkSessionId(id)
  if (isChildId(id))
    throw new Fault(
      'invalid_input',
      `A session cannot be named "${id}": children are named like that. Choose another id.`,
    )
}

/** As SQLite orders text, by its UTF-8 bytes: what UTF-16 writes as surrogates comes after all else. */
export function compareIds(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const [left, right] = [a.charCodeAt(i), b.charCodeAt(i)]
    if (left !== right) return rank(left) - rank(right)
  }
  return a.length - b.length
}

function rank(unit: number): number {
  return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit
}

/** Was this answer given by a child? */
export function isChildKey(id: string): boolean {
  // Older logs have it without the mark of the harness.
  return id.startsWith(ownId('child', '')) || id.startsWith('child:')
}

/** Did a parent say this to its child? */
export function isParentKey(id: string): boolean {
  return id.startsWith(ownId('parent', '')) || id.startsWith('parent:')
}
