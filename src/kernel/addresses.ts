// Where the documentation stands on the web. The only place in the code that names it; package.json's `homepage` is the same,
// which a test checks.

export const SITE = 'https://example.com/terret'
