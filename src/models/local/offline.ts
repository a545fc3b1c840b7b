// The offline model: answers by fixed rules, without a key or a network, and says so. It is not a language model; it is for demos
// and tests in which the words do not matter.
import type { Priced } from '../http/hosted.ts'
import { FREE } from '../price.ts'

export const OFFLINE = 'offline'

export function offline(): Priced {
  return {
    name: OFFLINE,
    able: { name: OFFLINE, native: 'possible' },
    outputTokensMax: 1_024,
    secrets: {},
    profile: async () => FREE,
    call: async (request, context) => (await import('./offline-rules.ts')).answer(request, context),
  }
}
