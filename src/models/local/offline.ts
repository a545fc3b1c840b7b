// The offline model: answers by fixed rules, without a key or a network, and says so. It is not a language model; it is
// for demos and tests in which the text does not matter.
import type { Priced } from '../http/hosted-model.ts'
import { FREE_PROFILE } from '../price.ts'

export const OFFLINE = 'offline'

/** A model that works by fixed rules and needs no key and no network: for a first try, and for demonstrations. */
export function offline(): Priced {
  return {
    name: OFFLINE,
    able: { name: OFFLINE, native: 'possible' },
    outputTokensMax: 1_024,
    secrets: {},
    profile: async () => FREE_PROFILE,
    call: async (request, context) => (await import('./offline-rules.ts')).answerOffline(request, context),
  }
}
