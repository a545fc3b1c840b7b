// A run with options, metadata and a context, killed after each of its commits, or a share of them, and finished by another process.
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { makeFile } from '../stores/folder.ts'
import { share, upTo } from '../runs.ts'
import { COMMITS_MAX, killedAfter } from './killed.ts'

const CHILD = fileURLToPath(new URL('../../.build/test/runtime/child-run-options.js', import.meta.url))

type Line = { readonly seq?: number; readonly request?: unknown; readonly built?: unknown }
type Ended = { readonly said: string; readonly lines: readonly Line[] }

async function finished(commits: number): Promise<Ended & { readonly killed: boolean }> {
  const file = makeFile()
  const noted = join(dirname(file), 'lines.txt')
  const ended = await killedAfter(commits, (last) => [CHILD, file, 's', noted, String(last)])
  const lines = readFileSync(noted, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
  return { ...ended, lines }
}

it('B-RUN-2, B-META-8: killed after any commit, another process makes the same requests and builds the context from the same metadata', async () => {
  const whole = await finished(0)
  const answer = { status: 'completed', output: { turns: 2 }, metadata: { tenant: 'acme', user: 'ann' } }
  expect(JSON.parse(whole.said)).toEqual(answer)
  const bytesOf = ({ request }: Line): string => JSON.stringify(request)
  const requests = whole.lines.filter(({ request }) => request !== undefined).map(bytesOf)
  expect(requests).toHaveLength(3)
  expect(requests[0]).toContain('Be odd.')
  for (const commits of share(upTo(COMMITS_MAX).slice(1))) {
    const { said, killed, lines } = await finished(commits)
    expect(JSON.parse(said), `after commit ${commits}`).toEqual(answer)
    // A request that was lost is asked again as it was, but for the place of its question in the log.
    const made = new Set(lines.filter(({ request }) => request !== undefined).map((line) => withoutSeq(bytesOf(line))))
    expect([...made], `after commit ${commits}`).toEqual(requests.map(withoutSeq))
    for (const { built } of lines.filter((line) => line.built !== undefined))
      expect(built).toEqual({ tenant: 'acme', user: 'ann' })
    if (!killed) return
  }
  throw new Error(`It made more than ${COMMITS_MAX} commits.`)
}, 180_000)

/** Without places in the log: no provider is sent them. */
function withoutSeq(bytes: string): string {
  return bytes
    .replaceAll(/"seq":\d+/g, '"seq":0')
    .replaceAll(/"(key|call)":"\d+\./g, '"$1":"0.')
    .replaceAll(/call_\d+_/g, 'call_0_')
}
