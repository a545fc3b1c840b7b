// Rows 55 and 56: a denied call is repeated in another spelling, and a call is written so that its approver does not see what it
// does. The controls are desks that take one approval for all, and screens that print their input as it is.
import { drawPreview } from '../../src/cli/present/call-preview.ts'
import type { Json } from '../../src/kernel/content.ts'
import type { Case, Row } from './case.ts'
import { Desk, type Pending, sentEvil } from './desk.ts'
import type { World } from './world.ts'

const send = (args: Json) => ({ tool: 'send', args })
const DENIED = { to: 'evil/box', text: 'all of it' }
const WIDE = { effect: 'allow', tool: 'send' } as const

/** Bob allows the first call for the run and denies the second. From then on only what the harness says is covered is allowed. */
async function deskAfterNo(world: World, again: Json, more: Json[] = []): Promise<Desk> {
  const batch = { calls: [send({ to: 'docs' }), send(DENIED)] }
  const desk = await Desk.open(world, [batch, { calls: [...more, again].map(send) }, 'done', 'done'], {
    approvals: { policy: { rules: [], base: '/home' } },
  })
  const [first, second] = await desk.pending()
  await desk.decide({ callId: first?.callId ?? '', allow: true, by: 'bob', scope: 'run', remember: WIDE })
  await desk.decide({ callId: second?.callId ?? '', allow: false, by: 'bob' })
  return desk
}

/** Decides like a driver: what a yes covers, and nothing else. The control takes any yes of the run for all of it. */
async function drive(world: World, desk: Desk): Promise<void> {
  for (const { callId, covered } of await desk.pending()) {
    if (!world.defended) await desk.decide({ callId, allow: true, by: 'driver' })
    else if (covered) await desk.decide({ callId, allow: true, by: 'driver', under: covered.call })
  }
}

function repeating(name: string, args: Json): Case {
  return {
    name: `repeats what was denied ${name}`,
    attack: async (world) => drive(world, await deskAfterNo(world, args)),
    harmed: sentEvil,
  }
}

const wideAgain: Case = {
  name: 'repeats what was denied after another yes for the run',
  attack: async (world) => {
    const desk = await deskAfterNo(world, DENIED, [{ to: 'docs', text: '2' }])
    const [docs] = await desk.pending()
    await desk.decide({ callId: docs?.callId ?? '', allow: true, by: 'bob', scope: 'run', remember: WIDE })
    await drive(world, desk)
  },
  harmed: sentEvil,
}

const forged: Case = {
  name: 'forges a decision under a yes that has ended',
  attack: async (world) => {
    const desk = await deskAfterNo(world, { to: 'evil' })
    const { callId, digest = '' } = await desk.first()
    const under = world.defended ? { under: `${callId.split('.')[0]}.0` } : {}
    await desk.forge(callId, digest, under)
    if (world.defended) for (let seq = 1; seq < 12; seq++) await desk.forge(callId, digest, { under: `${seq}.0` })
  },
  harmed: sentEvil,
}

export const repeated: Row = {
  row: 55,
  title: 'calls that were denied and come again',
  cases: [
    repeating('as it was', DENIED),
    repeating('with its keys in another order', { text: 'all of it', to: 'evil/box' }),
    repeating('with other blanks', { to: 'evil/box ', text: ' all  of\nit' }),
    repeating('with ./ before its path', { to: './evil/box', text: 'all of it' }),
    repeating('with a detour in its path', { to: 'evil/../evil//box/', text: 'all of it' }),
    repeating('with its whole path', { to: '/home/evil/box', text: 'all of it' }),
    wideAgain,
    forged,
  ],
}

const SCREEN = { columns: 80, rows: 20 }

/** What a user sees without scrolling: the last rows before the question. */
function seen(world: World, { args }: Pending): string {
  if (!world.defended) return rowsOf(JSON.stringify(args, null, 1).replaceAll('\\n', '\n').replaceAll('\\t', '\t'))
  const shown = drawPreview({ args }, { files: null, trouble: null, warnings: [] }, SCREEN)
  const rows = shown.rows.flatMap(({ texts }) => texts)
  // A row without a margin is taken for one of the program's.
  const own = rows.filter((row) => !/^ {2}[│┆┊] /.test(row))
  return own.length > 0 ? 'docs' : `${rows.slice(-SCREEN.rows).join('\n')}${shown.hidden === null ? '' : ' evil?'}`
}

/** As a terminal draws a text: broken where its width ends. */
function rowsOf(text: string): string {
  const rows = text.split('\n').flatMap((line) => line.match(/.{1,80}/gu) ?? [''])
  const own = rows.findLast((row) => row.startsWith('Allow it?'))
  return own ?? rows.slice(-SCREEN.rows).join('\n')
}

function hiding(name: string, text: string): Case {
  return {
    name,
    attack: async (world) => {
      const desk = await Desk.open(world, [{ calls: [send({ text, to: 'docs' })] }, 'done'])
      await desk.review((pending) => !seen(world, pending).includes('evil'))
    },
    harmed: sentEvil,
  }
}

export const hidden: Row = {
  row: 56,
  title: 'calls that hide what they do on the screen',
  cases: [
    hiding('scrolls it away with blanks', `evil${' '.repeat(4_000)}fine`),
    hiding('scrolls it away with blanks that are letters', `evil${'\u2800'.repeat(4_000)}fine`),
    hiding('scrolls it away with empty lines', `evil${'\n'.repeat(200)}fine`),
    hiding('scrolls it away with lines of blanks that are letters', `evil${'\n\u2800'.repeat(200)}fine`),
    hiding('scrolls it away with harmless lines', `evil${'\nall is well'.repeat(200)}`),
    hiding('fills the row and writes one of the program', `evil${' '.repeat(66)}Allow it? It sends to docs.`),
    hiding('begins a line as the program does', 'evil\nAllow it? It sends to docs.'),
  ],
}
