// Planted faults: small mutations of the real source, applied one at a time to a copy. The simulator must catch every one
// of them, and the unchanged copy must pass the same seeds. A mutation that no longer applies is an error, not a pass.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { FAULTS, type Planted } from './faults.ts'

const SEEDS = 600

/** True when the clean copy passes and every planted fault whose name holds `only` is caught. */
export async function planted(only = ''): Promise<boolean> {
  const faults = FAULTS.filter(({ name }) => name.includes(only))
  if (faults.length === 0) throw new Error(`No planted fault has "${only}" in its name.`)
  const root = resolve('.build', 'planted')
  let good = true
  const clean = run(root, null)
  console.log(`${clean.caught ? 'FAILED ' : 'passes '}  the clean tree, ${SEEDS} seeds`)
  if (clean.caught) console.log(clean.output)
  good &&= !clean.caught
  for (const fault of faults) {
    const { caught, by } = run(root, fault)
    console.log(`${caught ? 'caught ' : 'MISSED '}  ${fault.name}${caught ? `  (${by})` : ''}`)
    good &&= caught
  }
  console.log(`${faults.length} planted faults, ${good ? 'all caught' : 'NOT all caught'}`)
  rmSync(root, { recursive: true, force: true })
  return good
}

type Outcome = { readonly caught: boolean; readonly by: string; readonly output: string }

function run(root: string, fault: Planted | null): Outcome {
  rmSync(root, { recursive: true, force: true })
  mkdirSync(root, { recursive: true })
  for (const part of ['src', 'sim']) cpSync(part, join(root, part), { recursive: true })
  cpSync('package.json', join(root, 'package.json'))
  symlinkSync(resolve('node_modules'), join(root, 'node_modules'))
  writeFileSync(join(root, 'tsconfig.json'), config())
  if (fault) apply(root, fault)
  // A mutation may not type-check; it must only run.
  spawnSync(process.execPath, [resolve('node_modules', 'typescript', 'bin', 'tsc'), '-p', root], { stdio: 'ignore' })
  const main = join(root, 'out', 'sim', 'main.js')
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, '--bail', '--seeds', `${SEEDS}`], {
    encoding: 'utf8',
    timeout: 900_000,
  })
  const output = `${stdout}${stderr}`
  // Seeds that were not all run have shown nothing.
  if (status === null)
    return { caught: fault === null, by: 'took too long', output: `${output}The seeds took too long.` }
  const by = /\b([A-Z]\d+) /.exec(/seed \d+: (.*)/.exec(output)?.[1] ?? '')?.[1] ?? `exit ${status}`
  return { caught: status !== 0, by, output }
}

/** The source still holds what this fault changes, exactly once. */
export function applies({ file, find }: Planted, root = '.'): boolean {
  return readFileSync(join(root, file), 'utf8').split(find).length === 2
}

function apply(root: string, fault: Planted): void {
  const { file, find, replace, name } = fault
  if (!applies(fault, root)) {
    throw new Error(`Planted fault "${name}" does not apply: ${file} must hold this exactly once: ${find}`)
  }
  const path = join(root, file)
  writeFileSync(
    path,
    readFileSync(path, 'utf8').replace(find, () => replace),
  )
}

/** The repository's own settings, for the copy. */
function config(): string {
  const options = { outDir: 'out', rootDir: '.', noEmitOnError: false, noCheck: true }
  return JSON.stringify({ extends: resolve('tsconfig.json'), compilerOptions: options, include: ['src', 'sim'] })
}
