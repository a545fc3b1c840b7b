// Handles a change of the server's store: all data on the page is stale, so the page reloads and says so.
const KEY = 'terret.anew'
/** Not more often, since two servers with two stores may answer in turn. */
const AGAIN_MS = 10_000

export function reloadForNewStore(): void {
  if (Date.now() - Number(sessionStorage.getItem(KEY)) < AGAIN_MS) return
  sessionStorage.setItem(KEY, String(Date.now()))
  location.reload()
}

/** Whether this load of the page was such a reload. */
export function wasReloadedForStore(): boolean {
  return performance.timeOrigin - Number(sessionStorage.getItem(KEY)) < AGAIN_MS
}
