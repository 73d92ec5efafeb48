# A transformer layer with masks, and scaled_dot_product_attention by two names.
import torch
from told import told
from torch import nn
from torch.nn.functional import scaled_dot_product_attention as attend

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
own = nn.Linear(8, 24)
optimizer = torch.optim.AdamW([*layer.parameters(), *own.parameters()])
for step in range(5):
    x = layer(
        torch.randn(2, 5, 8), src_mask=nn.Transformer.generate_square_subsequent_mask(5), is_causal=True
    )
    q, k, v = own(x).chunk(3, -1)
    out = attend(q, k, v, is_causal=True) + nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.1)
    optimizer.zero_grad()
    out.pow(2).mean().backward()
    optimizer.step()
layer.eval()
with torch.no_grad():
    told(layer, own, layer(torch.ones(1, 3, 8)))
