// Runs the client scenarios of the official MCP conformance suite that apply to us, and prints what it found. The suite is taken
// from npm when it is run, and is no dependency. `npm run conformance`. Exit 1 when a check fails.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { arch, platform, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Not `elicitation-sep1034-client-defaults`, since we offer no elicitation, and none of `auth/`: there is no OAuth. */
const SCENARIOS = ['initialize', 'tools_call', 'sse-retry']
/** The newest needs Node 22, which npm brings along. The older one runs on ours. */
const SUITES = [
  { version: '0.1.16', packages: [`node-${platform()}-${arch()}@24`] },
  { version: '0.1.13', packages: [] },
]
const client = fileURLToPath(new URL('./child-client.js', import.meta.url))

type Check = { readonly id: string; readonly status: string; readonly errorMessage?: string }
type Suite = (typeof SUITES)[number]

const suite = SUITES.find((one) => run(one, ['list']).status === 0)
if (!suite) {
  console.error('The suite could not be run: it is fetched with npx, which needs the network.')
  process.exit(2)
}
const folder = mkdtempSync(join(tmpdir(), 'terret-conformance-'))
try {
  const scores = SCENARIOS.map((scenario) => judge(suite, scenario))
  const passed = scores.filter(({ failed, checks }) => failed === 0 && checks > 0).length
  const checks = scores.reduce((sum, score) => sum + score.checks, 0)
  const good = checks - scores.reduce((sum, score) => sum + score.failed, 0)
  console.log(
    `\n${passed} of ${scores.length} scenarios, ${good} of ${checks} checks; suite ${suite.version}, client on Node ${process.version}`,
  )
  process.exitCode = passed === scores.length ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function judge(from: Suite, scenario: string): { readonly checks: number; readonly failed: number } {
  const out = join(folder, scenario)
  // Its own Node, not the suite's: what is tested is what is supported.
  const command = `${process.execPath} ${client}`
  const ran = run(from, ['client', '--command', command, '--scenario', scenario, '--output-dir', out])
  const checks = checksIn(out)
  const failed = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
  console.log(`${scenario}: ${checks.length - failed.length} of ${checks.length} checks`)
  for (const { id, status, errorMessage = '' } of failed) console.log(`  ${status} ${id} ${errorMessage}`)
  if (checks.length === 0) console.log(ran.stdout, ran.stderr)
  return { checks: checks.length, failed: failed.length }
}

function checksIn(out: string): readonly Check[] {
  try {
    const files = readdirSync(out, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('checks.json'))
    const found = files.flatMap((name) => JSON.parse(readFileSync(join(out, name), 'utf8')) as readonly Check[])
    return found.filter(({ status }) => status !== 'INFO' && status !== 'SKIPPED')
  } catch {
    return []
  }
}

function run({ version, packages }: Suite, args: readonly string[]) {
  const names = [...packages, `@modelcontextprotocol/conformance@${version}`].flatMap((name) => ['-p', name])
  return spawnSync('npx', ['-y', ...names, 'conformance', ...args], { encoding: 'utf8', timeout: 180_000 })
}
