// Row 28: processes that want to outlive the command that started them, and the harness that started it.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Case, Row } from './case.ts'
import { naiveBash } from './naive.ts'
import { sleep, type World } from './world.ts'

const QUIET = '>/dev/null 2>&1 </dev/null'

function outliving(name: string, command: (sleeper: string) => string, more = {}): Case {
  return {
    name,
    needs: ['bubblewrap'],
    attack: (world) => {
      const tool = world.defended ? world.bash(null) : naiveBash(world)
      return world.run(tool, command(`sleep ${world.mark}`), more)
    },
    harmed: (world) => world.survivors().length > 0,
  }
}

/** The process writes on after the call is over. */
const late: Case = {
  name: 'writes on after it has ended',
  needs: ['bubblewrap'],
  attack: async (world) => {
    const tool = world.defended ? world.bash(null) : naiveBash(world)
    const writer = `for i in $(seq 30); do echo ${world.mark} > late; sleep 0.1; done`
    await world.run(tool, `setsid bash -c '${writer}' ${QUIET} & echo started`)
    world.put('ws/late', 'over')
    await sleep(300)
  },
  harmed: (world) => world.text('ws/late') !== 'over',
}

/** A harness of its own, as a process that is killed while its command runs. Compiled: plain node cannot run the source. */
const CHILD = fileURLToPath(
  new URL(
    import.meta.url.endsWith('.ts') ? '../../.build/test/sandbox/child-run.js' : '../sandbox/child-run.js',
    import.meta.url,
  ),
)

async function killed(world: World, start: () => ReturnType<typeof spawn>): Promise<void> {
  const child = start()
  child.on('error', () => {})
  const gone = new Promise((resolve) => child.once('exit', resolve))
  for (let i = 0; i < 1_000 && !world.has('ws/up'); i++) await sleep(10)
  child.kill('SIGKILL')
  await gone
  for (let i = 0; i < 200 && world.defended && world.survivors().length > 0; i++) await sleep(10)
}

/** The harness dies by SIGKILL and can do nothing more: the kernel must. */
const orphaned: Case = {
  name: 'outlives the harness that was killed',
  needs: ['bubblewrap'],
  attack: (world) => {
    const command = `setsid sleep ${world.mark} ${QUIET} & echo up > up; sleep ${world.mark}`
    return killed(world, () => {
      const { workspace } = world
      if (!world.defended)
        return spawn('/bin/bash', ['-c', `bash -c '${command}' & wait`], { cwd: workspace, stdio: 'ignore' })
      const child = spawn(process.execPath, [CHILD], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
      child.once('message', () => child.send({ workspace, command }))
      return child
    })
  },
  harmed: (world) => !world.has('ws/up') || world.survivors().length > 0,
}

export const daemons: Row = {
  row: 28,
  title: 'processes that outlive their command',
  cases: [
    outliving('starts a session of its own', (sleeper) => `setsid ${sleeper} ${QUIET} &`),
    outliving('ignores that its terminal is gone', (sleeper) => `nohup ${sleeper} ${QUIET} &`),
    outliving('forks twice', (sleeper) => `(setsid sh -c '${sleeper} ${QUIET} & exit' &)`),
    outliving('ignores signals', (sleeper) => `(trap '' TERM HUP INT; setsid ${sleeper} ${QUIET}) ${QUIET} &`),
    outliving('is disowned by its shell', (sleeper) => `${sleeper} ${QUIET} & disown -a`),
    outliving(
      'stops itself until somebody goes on',
      (sleeper) => `(kill -STOP $BASHPID; ${sleeper}) ${QUIET} & setsid ${sleeper} ${QUIET} &`,
    ),
    outliving('starts a hundred at once', (sleeper) => `for i in $(seq 100); do setsid ${sleeper} ${QUIET} & done`),
    outliving('kills whoever waits for it', (sleeper) => `setsid ${sleeper} ${QUIET} & kill -9 $PPID $$`, {
      timeout_ms: 1_000,
    }),
    outliving('runs out of time with others still running', (sleeper) => `setsid ${sleeper} ${QUIET} & sleep 1.5`, {
      timeout_ms: 500,
    }),
    late,
    ...(existsSync(CHILD) ? [orphaned] : []),
  ],
}
