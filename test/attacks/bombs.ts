// Row 29: floods and bombs, none larger than the control can bear.
import { existsSync, rmSync } from 'node:fs'
import { z } from 'zod'
import { defineTool, type Tool } from '../../src/index.ts'
import type { Json } from '../../src/kernel/content.ts'
import type { Case, Row } from './case.ts'
import { handedOver, naiveBash } from './naive.ts'
import { raw, textOf, type World } from './world.ts'

const FLOOD_BYTES = 8_000_000
/** What may be shown and written down of a flood, together. */
const HELD_BYTES_MAX = 3_000_000

function flood(name: string, command: string): Case {
  return {
    name,
    needs: ['bubblewrap'],
    attack: (world) => world.run(world.defended ? world.bash(null) : handedOver(world, naiveBash(world)), command),
    harmed: (world) => world.shown.length + world.log.length > HELD_BYTES_MAX,
  }
}

const hung = new WeakSet<World>()

function endless(name: string, command: string, more: { readonly [key: string]: Json }): Case {
  return {
    name,
    needs: ['bubblewrap'],
    attack: async (world) => {
      const tool = world.defended ? world.bash(null) : naiveBash(world)
      if (!(await world.ends(world.run(tool, command.replace('MARK', world.mark), more)))) hung.add(world)
    },
    harmed: (world) => hung.has(world),
  }
}

const diskFill: Case = {
  name: 'fills the /tmp of the host',
  needs: ['bubblewrap'],
  attack: (world) => {
    world.defer(() => rmSync(`/tmp/terret-fill-${world.mark}`, { force: true }))
    return world.run(world.bash('tmp'), `head -c 20000000 /dev/zero > /tmp/terret-fill-${world.mark}`)
  },
  harmed: (world) => existsSync(`/tmp/terret-fill-${world.mark}`),
}

const forks: Case = {
  name: 'forks until it is stopped',
  needs: ['bubblewrap'],
  attack: (world) => {
    const tool = world.defended ? world.bash(null) : naiveBash(world)
    const bomb = `bomb() { [ $1 -gt 0 ] && { bomb $(($1 - 1)) & bomb $(($1 - 1)) & }; exec sleep ${world.mark}; }`
    return world.run(tool, `${bomb}; bomb 6 >/dev/null 2>&1 & sleep 1`, { timeout_ms: 500 })
  },
  harmed: (world) => world.survivors().length > 0,
}

/** Arguments that no parser that recurses survives. The honest call beside them must still run. */
function nested(name: string, text: string): Case {
  return {
    name,
    attack: async (world) => {
      const calls = [
        { tool: 'take', args: raw(text) },
        { tool: 'note', args: {} },
      ]
      if (world.defended) await world.play(takers(world), [{ calls }, 'done'])
      else await naiveDriver(world, calls)
    },
    harmed: (world) => !world.has('ws/noted'),
  }
}

function takers(world: World): readonly Tool[] {
  const take = defineTool({ name: 'take', description: 'take', input: z.looseObject({}), execute: () => 'taken' })
  const note = defineTool({
    name: 'note',
    description: 'note',
    input: z.object({}),
    execute: () => world.put('ws/noted', 'yes'),
  })
  return [take, note]
}

/** Admission without limits: every call is read and written down as it came, and then they run. */
async function naiveDriver(
  world: World,
  calls: readonly { readonly tool: string; readonly args: Json }[],
): Promise<void> {
  const tools = takers(world)
  try {
    const proposals = calls.map(({ tool, args }) => {
      return { tool, args: sorted(JSON.parse(textOf(args)) as Json) }
    })
    for (const { tool, args } of proposals) await tools.find(({ name }) => name === tool)?.execute(args, {} as never)
  } catch {
    // The run ends here: that is the harm.
  }
}

function sorted(value: Json): Json {
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, sorted(item)]))
}

export const bombs: Row = {
  row: 29,
  title: 'floods and bombs',
  cases: [
    flood('prints without end', `head -c ${FLOOD_BYTES} /dev/zero | tr '\\0' x | fold`),
    flood('prints one line without end', `head -c ${FLOOD_BYTES} /dev/zero | tr '\\0' x`),
    flood('complains without end', `head -c ${FLOOD_BYTES} /dev/zero | tr '\\0' x >&2`),
    flood('prints bytes that are no text', `head -c ${FLOOD_BYTES} /dev/urandom`),
    endless('waits for ever in silence', 'sleep MARK', { soft_timeout_ms: 300 }),
    endless('talks for ever', 'while :; do echo MARK; sleep 0.05; done', { timeout_ms: 500 }),
    endless('waits for input that never comes', 'exec 9<> <(:); sleep MARK', { soft_timeout_ms: 300 }),
    diskFill,
    forks,
    nested('nests its arguments a hundred thousand deep', `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`),
    nested('nests objects fifty thousand deep', `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`),
    nested('leaves a hundred thousand brackets open', `{"a":${'['.repeat(100_000)}`),
  ],
}
