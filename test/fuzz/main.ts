// The fuzzer's command line: `npm run fuzz -- --runs N [--seed S] [--target T] [--path P] | --planted`. Exit 1 on any finding.
// What is looked for is in the targets; this only runs them and prints the one command that replays a finding.
import { argumentsOf, refuse, wholeNumber } from '../../sim/arguments.ts'
import { type Target, run } from './target.ts'
import { targets } from './targets.ts'

const { values } = argumentsOf('fuzz', {
  options: {
    runs: { type: 'string', default: '2000' },
    seed: { type: 'string' },
    target: { type: 'string' },
    path: { type: 'string' },
    planted: { type: 'boolean', default: false },
  },
})
const runs = wholeNumber(values.runs, 'runs')
const seed = wholeNumber(values.seed ?? String(Date.now() % 1_000_000_000), 'seed')
const chosen = values.target === undefined ? targets : targets.filter(({ name }) => name === values.target)
if (chosen.length === 0) refuse(`--target must be one of: ${targets.map(({ name }) => name).join(', ')}.`)
if (values.path !== undefined && chosen.length > 1) refuse('--path belongs to one --target. Name it with --target.')

console.log(`seed ${seed}, ${runs} cases for each target`)
const good = values.planted ? await planted() : await clean()
process.exitCode = good ? 0 : 1

async function clean(): Promise<boolean> {
  let found = 0
  for (const target of chosen) if (!(await holds(target))) found += 1
  console.log(found === 0 ? `${chosen.length} targets, nothing found` : `${found} of ${chosen.length} targets FAILED`)
  return found === 0
}

async function holds(target: Target): Promise<boolean> {
  const begun = performance.now()
  const own = chosen.length === 1 ? runs : Math.ceil(runs / (target.every ?? 1))
  const outcome = await run(target.open(), {
    runs: own,
    seed,
    ...(values.path === undefined ? {} : { path: values.path }),
  })
  const seconds = ((performance.now() - begun) / 1_000).toFixed(1)
  if (outcome.found === null) {
    console.log(`holds   ${target.name.padEnd(10)} ${String(outcome.cases).padStart(8)} cases ${seconds.padStart(7)} s`)
    return true
  }
  const { counterexample, error, path } = outcome.found
  console.log(`FAILED  ${target.name.padEnd(10)} after ${outcome.cases} cases: ${error}\n  case: ${counterexample}`)
  console.log(`  replay: npm run fuzz -- --target ${target.name} --seed ${outcome.found.seed} --path ${path}`)
  return false
}

/** A fuzzer that finds nothing shows nothing until it is shown to find something. */
async function planted(): Promise<boolean> {
  const faults = chosen.flatMap((target) => target.planted.map((fault) => ({ target, fault })))
  let caught = 0
  for (const { target, fault } of faults) {
    const { cases, found } = await run(fault.open(), { runs, seed, first: true })
    if (found !== null) caught += 1
    const what = `${target.name}: ${fault.name}`
    console.log(found === null ? `MISSED  ${what}` : `caught  ${what}  (case ${cases}: ${found.error.slice(0, 100)})`)
  }
  console.log(`caught ${caught} of ${faults.length}`)
  return caught === faults.length
}
