// Session ids in page addresses. An id may contain any character, including a percent sign.
import type { BaseLocationHook } from 'wouter'

/**
 * The router decodes every address once, and the page decodes the id again. To keep the id's percent signs, they are
 * encoded once more here.
 */
export function keepPercent(hook: BaseLocationHook): BaseLocationHook {
  return (router: unknown) => {
    const [path, go] = hook(router)
    return [path.replaceAll('%25', '%2525'), go]
  }
}

export function decodeSessionId(id: string): string {
  try {
    return decodeURIComponent(id)
  } catch {
    return id
  }
}
