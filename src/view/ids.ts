// Reads parent and child from session ids. A root may have "~" in its id too, so only a complete suffix counts: the
// call of the parent that opened the child.

import type { CallKey } from '../kernel/content.ts'
const CHILD = /~[1-9]\d*(?:\.\d+){1,2}$/

export function isChildId(session: string): boolean {
  return CHILD.test(session)
}

/** The ids from the root down to the session itself. */
export function idsDownTo(session: string): readonly string[] {
  const ids = [session]
  for (let above = session; isChildId(above); ) {
    above = above.replace(CHILD, '')
    ids.unshift(above)
  }
  return ids
}

export function rootIdOf(session: string): string {
  return idsDownTo(session)[0] ?? session
}

/** The id of the child that a call opens; `n` distinguishes several children of one call. */
export function childId(session: string, call: CallKey, n: number | null = null): string {
  return `${session}~${call}${n === null ? '' : `.${n}`}`
}
