// Runs in a page: tries every way in which it may send requests to `url`; answers those in which something was read.
async ({ url, wanted }) => {
  const read = [];
  const settled = (start) => new Promise(start);
  for (const [method, path, body] of wanted) {
    const at = url + path;
    const text = JSON.stringify(body ?? {});
    const noBody = method === "GET" || method === "DELETE";
    const tries = {
      "as JSON": { method, headers: { "content-type": "application/json" }, body: noBody ? undefined : text },
      "without a body": { method },
      "as text": { method, body: noBody ? undefined : text },
      "with cookies": { method, body: noBody ? undefined : text, credentials: "include" },
      "as the Studio does": { method, headers: { "x-auth-scheme": "langsmith" }, body: noBody ? undefined : text },
      "asking for nothing": { method: noBody ? "GET" : "POST", mode: "no-cors", body: noBody ? undefined : text },
    };
    for (const [name, init] of Object.entries(tries)) {
      // Whether it was carried out is looked at afterwards; "as text" is 415 for those who may ask.
      const answer = await fetch(at, init).catch(() => undefined);
      if (answer && answer.type !== "opaque" && answer.ok) read.push(`${method} ${path} ${name}`);
    }
    navigator.sendBeacon(at, text);
    for (const enctype of ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data"]) {
      const frame = document.createElement("iframe");
      frame.name = "target";
      document.body.append(frame);
      const form = document.createElement("form");
      Object.assign(form, { action: at, method: "post", target: "target", enctype });
      const field = document.createElement("input");
      Object.assign(field, { name: `${text.slice(0, -1)}, "x`, value: `": 1}` });
      form.append(field);
      document.body.append(form);
      await settled((done) => {
        frame.onload = () => done(true);
        form.submit();
      });
      frame.remove();
      form.remove();
    }
    for (const [tag, attribute] of [
      ["script", "src"],
      ["img", "src"],
    ]) {
      const element = document.createElement(tag);
      const loaded = await settled((done) => {
        element.onload = () => done(true);
        element.onerror = () => done(false);
        element.setAttribute(attribute, at);
        document.body.append(element);
      });
      if (loaded) read.push(`${method} ${path} as ${tag}`);
    }
    const events = new EventSource(at);
    const opened = await settled((done) => {
      events.onopen = () => done(true);
      events.onerror = () => done(false);
    });
    events.close();
    if (opened) read.push(`${method} ${path} as EventSource`);
  }
  const socket = new WebSocket(`${url.replace("http", "ws")}/deployments/any`);
  const opened = await settled((done) => {
    socket.onopen = () => done(true);
    socket.onerror = () => done(false);
  });
  if (opened) read.push("WebSocket");
  return read;
};
