// What axe finds on a page, in few words.
import axe from 'axe-core'
import type { Page } from 'playwright-core'

type Violation = { readonly id: string; readonly nodes: readonly { readonly html: string }[] }

export async function faults(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source)
  const violations = (await page.evaluate(
    "window.axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations)",
  )) as readonly Violation[]
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`)
}
