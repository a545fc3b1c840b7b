// The same as a page shows, for a terminal: what to paste there.
import { shellCommand, shellWord } from '../../../view/shell.ts'
import { BASE } from '../../data/mount.ts'

/** One session, or one event of it. */
export function cliOf(session: string, seq: number | null): string {
  const server = `${location.origin}${BASE}`
  if (seq === null) return shellCommand`terret inspect ${session} --server ${server}`
  return `${shellCommand`terret history ${session} --server ${server} --json`} | sed -n '${seq}p'`
}

/** The token is not in it: it would stay in the history of a shell. */
export function curlOf(session: string, seq: number | null): string {
  const path = `${location.origin}${BASE}/v1/sessions/${encodeURIComponent(session)}`
  const url = seq === null ? path : `${path}/events?after=${seq - 1}&limit=1`
  return `curl -H "authorization: Bearer $TERRET_TOKEN" ${shellWord(url)}`
}
