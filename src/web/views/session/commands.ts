// The same as a page shows, for a terminal: what to paste there.
import { BASE } from '../../data/mount.ts'

/** Between single quotes, for a shell. */
function quoted(text: string): string {
  return /^[\w./:~-]+$/.test(text) && !text.startsWith('~') ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** One session, or one event of it. */
export function cliOf(session: string, seq: number | null): string {
  if (seq === null) return `terret inspect ${quoted(session)} --server ${location.origin}${BASE}`
  return `terret history ${quoted(session)} --server ${location.origin}${BASE} --json | sed -n '${seq}p'`
}

/** The token is not in it: it would stay in the history of a shell. */
export function curlOf(session: string, seq: number | null): string {
  const path = `${location.origin}${BASE}/v1/sessions/${encodeURIComponent(session)}`
  const url = seq === null ? path : `${path}/events?after=${seq - 1}&limit=1`
  return `curl -H "authorization: Bearer $TERRET_TOKEN" '${url}'`
}
