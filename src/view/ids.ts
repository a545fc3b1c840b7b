// How the ids of a tree of sessions tell who is whose child. A root may have "~" in its id too, so only the whole end counts that a
// child has after the id of its parent: the call that opened it.

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
