// When the server has another store than before, nothing on the page counts any more: all of it is read anew, and that is said.
const KEY = 'terret.anew'
/** Not again and again: two servers with two stores may answer in turn. */
const AGAIN_MS = 10_000

export function readAnew(): void {
  if (Date.now() - Number(sessionStorage.getItem(KEY)) < AGAIN_MS) return
  sessionStorage.setItem(KEY, String(Date.now()))
  location.reload()
}

/** This load of the page is that. */
export function wasReadAnew(): boolean {
  return performance.timeOrigin - Number(sessionStorage.getItem(KEY)) < AGAIN_MS
}
