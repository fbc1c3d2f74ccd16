// Words of the API in sentences. Nothing of this module knows of the page.

// asSentence makes a sentence of a text of the API, but leaves a name at its beginning alone.
export function asSentence(text) { return `${text.replace(/^(they|both|it|the|there|of|no|nobody|packets) /, w => w[0].toUpperCase() + w.slice(1))}.`; }
