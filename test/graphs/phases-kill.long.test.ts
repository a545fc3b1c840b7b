// A process killed in each phase of a workflow: the next one runs that phase again and those after it once, and none that was done.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { makeFile } from '../stores/folder.ts'

const SCRIPT = fileURLToPath(new URL('../../.build/test/graphs/child-phases.js', import.meta.url))

function start(file: string, place = '') {
  const args = [SCRIPT, file, `${file}.journal`, 'killed', place]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

async function line(child: ReturnType<typeof start>): Promise<string> {
  let said = ''
  for await (const chunk of child.stdout) {
    said += String(chunk)
    if (said.includes('\n')) break
  }
  return said.trim()
}

it.each(['a', 'b', 'c', 'd'])(
  'B-PHASE-10: killed in phase %s, it goes on with that phase and what is left; done phases do not run again',
  async (place) => {
    const file = makeFile()
    writeFileSync(`${file}.journal`, '')
    const first = start(file, place)
    expect(await line(first)).toBe(place)
    first.kill('SIGKILL')
    if (first.exitCode === null && first.signalCode === null) await once(first, 'exit')
    const said = JSON.parse(await line(start(file))) as { status: string; output: { results: object } }
    expect(said).toMatchObject({ status: 'completed', output: { summary: { phase: 'd', text: 'd done' } } })
    expect(Object.keys(said.output.results).sort()).toEqual(['a', 'b', 'c', 'd'])
    const ran = readFileSync(`${file}.journal`, 'utf8').trim().split('\n').sort()
    expect(ran).toEqual(['a', 'b', 'c', 'd', place].sort())
  },
)
