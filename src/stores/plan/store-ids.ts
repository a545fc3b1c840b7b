// The ids that the stores accept for sessions, events, workers, accounts and holds, and their order. Callers choose
// their ids; the harness's own ids have a form that no caller may use.
import { hash } from 'node:crypto'
import { Fault } from '../../kernel/failure.ts'
import { shownId } from '../../view/clean.ts'
import { isChildId, rootIdOf } from '../../view/ids.ts'
import { mayBeLane } from '../../view/lanes.ts'
import { readGraderId } from '../../view/pursuits.ts'

const ID_LENGTH_MAX = 512

/**
 * Session ids that callers may choose. An id stands in tables, addresses, file names and commands to paste, so it has
 * no character with a meaning in these. A leading dash is allowed, as many random ids have one: `shellCommand` keeps it
 * from being read as a flag.
 */
const OUTER = /^[A-Za-z0-9._:~-]{1,128}$/
/** Path steps, and the word for the newest session on the command line. */
const RESERVED: ReadonlySet<string> = new Set(['.', '..', 'latest'])

/** For a session id from outside. The ids of children are built here from the id of their root. */
export function checkSessionId(id: unknown): void {
  const root = typeof id === 'string' ? rootIdOf(id) : ''
  if (isStoreId(id) && OUTER.test(root) && !RESERVED.has(root)) return
  const what = typeof id === 'string' && id !== '' ? `The session id "${shownId(id)}"` : 'A session id that is empty'
  throw new Fault(
    'invalid_input',
    `${what} cannot be used: it must be 1 to 128 letters, digits, ".", "_", ":", "~" or "-", and not ".", ".." or "latest". Choose another.`,
  )
}

/** Invisible characters, and characters that change the direction of the text around them. */
const UNDRAWN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u

/** Ids are stored and compared as UTF-8: an id without a UTF-8 form could collide with another. */
export function isStoreId(id: unknown): id is string {
  return typeof id === 'string' && id.length > 0 && id.length <= ID_LENGTH_MAX && !/[\0\uD800-\uDFFF]/u.test(id)
}

/** Refuses an id that a store cannot keep, with `invalid_input`. */
export function checkId(kind: string, id: unknown): void {
  if (isStoreId(id)) return
  throw new Fault('invalid_input', `The ${kind} must be 1 to ${ID_LENGTH_MAX} well-formed characters.`)
}

/** Inbox events of the harness itself have ids with this prefix; callers may not use it. */
const OWN = 'terret:'

export function harnessId(...parts: readonly (string | number)[]): string {
  return OWN + parts.join(':')
}

/**
 * The id of a stop that a session passes to those below it. It includes that session: a stop by another session, for
 * the same reason, is not a repetition.
 */
export function stopId(session: string, why: string | number): string {
  return harnessId('parent', 'stop', hash('sha256', JSON.stringify([session, why])))
}

/** The ids of events that are sent together under one caller's id: the first keeps that id. */
export function idInBatch(id: string, index: number): string {
  return index === 0 ? id : harnessId('batch', hash('sha256', id), index)
}

export function checkCallersId(id: string): void {
  checkId('id', id)
  if (UNDRAWN.test(id))
    throw new Fault('invalid_input', `The id "${shownId(id)}" has a character that is not drawn. Choose another.`)
  if (id.startsWith(OWN))
    throw new Fault('invalid_input', `An id cannot begin with "${OWN}": the harness's own ids do. Choose another.`)
}

/** For a new root session. A root with the form of a child's id, a lane's or a grader's would stand where that must be. */
export function checkRootId(id: string): void {
  checkSessionId(id)
  if (isChildId(id))
    throw new Fault(
      'invalid_input',
      `A session cannot be named "${id}": children are named like that. Choose another id.`,
    )
  if (mayBeLane(id))
    throw new Fault(
      'invalid_input',
      `A session cannot be named "${id}": the lanes of consumers are named like that. Choose another id.`,
    )
  if (readGraderId(id) !== null)
    throw new Fault(
      'invalid_input',
      `A session cannot be named "${id}": the graders of outcomes are named like that. Choose another id.`,
    )
}

/** The order of SQLite, by UTF-8 bytes: UTF-16 surrogates sort after everything else. */
export function compareIds(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const [left, right] = [a.charCodeAt(i), b.charCodeAt(i)]
    if (left !== right) return codeUnitRank(left) - codeUnitRank(right)
  }
  return a.length - b.length
}

function codeUnitRank(unit: number): number {
  return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit
}

/** Whether this answer came from a child. */
export function isChildKey(id: string): boolean {
  // Older logs have these ids without the harness's prefix.
  return id.startsWith(harnessId('child', '')) || id.startsWith('child:')
}

/** Whether this message came from a parent. */
export function isParentKey(id: string): boolean {
  return id.startsWith(harnessId('parent', '')) || id.startsWith('parent:')
}
