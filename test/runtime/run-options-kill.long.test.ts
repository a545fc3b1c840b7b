// A run with options, metadata and a context, killed after each of its commits and finished by another process.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { makeFile } from '../stores/folder.ts'

const CHILD = fileURLToPath(new URL('../../.build/test/runtime/child-run-options.js', import.meta.url))

type Line = { readonly seq?: number; readonly request?: unknown; readonly built?: unknown }
type Ended = { readonly said: string; readonly lines: readonly Line[] }

/** A process killed after so many commits, if it makes as many, and then one that goes on. */
async function killedAfter(commits: number): Promise<Ended & { readonly killed: boolean }> {
  const file = makeFile()
  const noted = join(dirname(file), 'lines.txt')
  const start = (last: number) => {
    const child = spawn(process.execPath, [CHILD, file, 's', noted, String(last)])
    onTestFinished(() => void child.kill('SIGKILL'))
    child.stderr.pipe(process.stderr)
    let said = ''
    child.stdout.on('data', (data: Buffer) => {
      said += data.toString()
      if (said === 'here\n') child.kill('SIGKILL')
    })
    return once(child, 'close').then(() => said)
  }
  const first = await start(commits)
  const killed = first === 'here\n'
  const said = killed ? await start(0) : first
  const lines = readFileSync(noted, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
  return { said, killed, lines }
}

it('B-RUN-2, B-META-8: killed after any commit, another process makes the same requests and builds the context from the same metadata', async () => {
  const whole = await killedAfter(0)
  const answer = { status: 'completed', output: { turns: 2 }, metadata: { tenant: 'acme', user: 'ann' } }
  expect(JSON.parse(whole.said)).toEqual(answer)
  const bytesOf = ({ request }: Line): string => JSON.stringify(request)
  const requests = whole.lines.filter(({ request }) => request !== undefined).map(bytesOf)
  expect(requests).toHaveLength(3)
  expect(requests[0]).toContain('Be odd.')
  for (let commits = 2; ; commits++) {
    const { said, killed, lines } = await killedAfter(commits)
    expect(JSON.parse(said), `after commit ${commits}`).toEqual(answer)
    // A request that was lost is asked again as it was, but for the place of its question in the log.
    const made = new Set(lines.filter(({ request }) => request !== undefined).map((line) => withoutSeq(bytesOf(line))))
    expect([...made], `after commit ${commits}`).toEqual(requests.map(withoutSeq))
    for (const { built } of lines.filter((line) => line.built !== undefined))
      expect(built).toEqual({ tenant: 'acme', user: 'ann' })
    if (!killed) return
  }
}, 180_000)

/** Without places in the log: no provider is sent them. */
function withoutSeq(bytes: string): string {
  return bytes
    .replaceAll(/"seq":\d+/g, '"seq":0')
    .replaceAll(/"(key|call)":"\d+\./g, '"$1":"0.')
    .replaceAll(/call_\d+_/g, 'call_0_')
}
