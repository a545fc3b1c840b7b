// An hour without a provider loses nothing. `npm run outage` runs it and prints its figures.
import { expect, it } from 'vitest'
import { type Figures, playHour } from './outage-hour.ts'
import { storeOf, STORAGES } from './hosted-stage.ts'
import { openPostgres } from '../postgres/opened.ts'
import { noPostgres } from '../postgres/server.ts'

function holds(figures: Figures, where: string): void {
  const { sessions, paid, callersLeft, requests, answered, refused, resets, spent, held, spentByLog, assumed } = figures
  console.log(
    `An hour without a provider on ${where}: ${sessions} sessions, ${figures.completed} completed, ${callersLeft} callers left after 15 minutes, ` +
      `${requests} requests (${answered} answered, ${refused} refused, ${resets} reset), held $${held / 1e6}, ` +
      `settled $${spent / 1e6}, of that assumed $${assumed / 1e6}, in ${Math.round(figures.lastedMs / 60_000)} minutes.`,
  )
  expect(figures).toMatchObject({ completed: sessions, runsFailed: 0, held: 0 })
  expect([...paid.values()]).toEqual(Array(sessions).fill(1))
  expect(spent).toBe(spentByLog)
  expect(answered).toBe(2 * sessions)
  expect(Math.min(callersLeft, refused, resets, assumed)).toBeGreaterThan(0)
}

it.each(STORAGES)(
  'B-PATIENCE-12: on %s an hour of 503, Retry-After and resets loses no session, runs no `once` call twice, and the money adds up',
  async (storage) => {
    const figures = await playHour((clock) => storeOf(storage, clock), 45)
    holds(figures, storage)
  },
  300_000,
)

it.skipIf(noPostgres)(
  'B-PATIENCE-12: on postgres an hour of 503, Retry-After and resets loses no session, runs no `once` call twice, and the money adds up',
  async () => {
    const figures = await playHour((clock) => openPostgres({ clock }), 15)
    holds(figures, 'postgres')
  },
  300_000,
)
