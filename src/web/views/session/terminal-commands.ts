// Commands that show the same as the page, to paste into a terminal.
import { shellCommand, shellWord } from '../../../view/shell-command.ts'
import { BASE } from '../../data/mount.ts'

/** Shows one session, or one event of it. */
export function cliCommand(session: string, seq: number | null): string {
  const server = `${location.origin}${BASE}`
  if (seq === null) return shellCommand`terret inspect ${session} --server ${server}`
  return `${shellCommand`terret history ${session} --server ${server} --json`} | sed -n '${seq}p'`
}

/** The token is left out, because it would stay in the shell's history. */
export function curlCommand(session: string, seq: number | null): string {
  const path = `${location.origin}${BASE}/v1/sessions/${encodeURIComponent(session)}`
  const url = seq === null ? path : `${path}/events?after=${seq - 1}&limit=1`
  return `curl -H "authorization: Bearer $TERRET_TOKEN" ${shellWord(url)}`
}
